// Command etcd is etcd's own server, unchanged, behind a main of ours.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"

	_ "roost/oracle/kube/lifeline"
)

func main() { etcdmain.Main(os.Args) }
