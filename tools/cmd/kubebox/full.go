//go:build full

package main

import (
	"os"

	_ "k8s.io/client-go/plugin/pkg/client/auth" // kubectl: credential plugins
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func addFull(programs map[string]func()) {
	programs["kube-controller-manager"] = func() {
		os.Exit(cli.Run(controllermanager.NewControllerManagerCommand()))
	}
	programs["kube-scheduler"] = func() { os.Exit(cli.Run(scheduler.NewSchedulerCommand())) }
	programs["kubectl"] = func() {
		// kubectl reads its verbosity before its flags are parsed; a value it
		// can't read is reported when the flags are.
		_, _ = logs.GlogSetter(kubectl.GetLogVerbosity(os.Args))
		if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
			kubectlutil.CheckErr(err)
		}
	}
}
