// Command kube-apiserver is Kubernetes' own API server, unchanged, behind a main of ours.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"

	_ "roost/oracle/kube/lifeline"
)

func main() { os.Exit(cli.Run(app.NewAPIServerCommand())) }
