package kube

import (
	"context"
	"fmt"
	"strings"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/custody-storage/custody/exclusive"
)

// requestTimeout is the deadline of one request to the API server.
const requestTimeout = 10 * time.Second

// fromMachineID is what package node puts before the id of a machine whose firmware has no UUID.
const fromMachineID = "machine-id-"

// Witness says what Kubernetes knows of an owner.
type Witness struct{ API kubernetes.Interface }

// Judge is a ceph.Witness. Lost is a node with the taint node.kubernetes.io/out-of-service, by which an admin says that it
// is off (KEP-2268), a node whose object is gone, and one whose name another machine has now. All else is Alive: nothing
// is known against it; not being Ready says nothing about writes. An API server that can't be asked is an error.
func (w *Witness) Judge(ctx context.Context, who exclusive.Who) (exclusive.Verdict, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	node, err := w.API.CoreV1().Nodes().Get(ctx, who.Node, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return exclusive.Lost, nil
	case err != nil:
		return exclusive.Alive, fmt.Errorf("ask Kubernetes for node %s: %w", who.Node, err)
	case another(who.Machine, node.Status.NodeInfo):
		return exclusive.Lost, nil
	}
	for _, t := range node.Spec.Taints {
		if t.Key == core.TaintNodeOutOfService {
			return exclusive.Lost, nil
		}
	}
	return exclusive.Alive, nil
}

// another tells whether the node's object is surely of another machine. One that no kubelet has filled in is not.
func another(machine string, info core.NodeSystemInfo) bool {
	have := info.SystemUUID
	if id, ok := strings.CutPrefix(machine, fromMachineID); ok {
		machine, have = id, info.MachineID
	}
	return have != "" && !strings.EqualFold(machine, have)
}
