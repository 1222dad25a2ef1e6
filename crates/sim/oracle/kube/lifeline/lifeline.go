// Package lifeline ends a program with its parent: when the variable ROOST_ORACLE_LIFELINE is set, the end of standard
// input ends the process. A test that is killed closes its end of the pipe without having to do anything.
package lifeline

import (
	"io"
	"os"
)

func init() {
	if os.Getenv("ROOST_ORACLE_LIFELINE") == "" {
		return
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
}
