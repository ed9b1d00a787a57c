package campaign

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"github.com/custody-storage/custody/cmd/lab/show"
	"github.com/custody-storage/custody/cmd/lab/stack"
	"github.com/custody-storage/custody/manager"
	"github.com/custody-storage/custody/test/actor"
)

// lab is the Kubernetes API and the S3 server that all tests of the package share.
// Each has its own drivers and namespace.
var lab struct {
	once  sync.Once
	stack *stack.Stack
	err   error

	sidecar    *rest.Config // how sidecars reach the API server, without a proxy
	controller stack.Program
}

func TestMain(m *testing.M) {
	actor.RunIfAsked()
	// What clients of ours log when a context ends would hide what the test prints.
	manager.SetLogger(logr.Discard())
	code := m.Run()
	if lab.stack != nil {
		if err := lab.stack.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

func openLab(t *testing.T) *stack.Stack {
	t.Helper()
	if testing.Short() {
		t.Skip("it runs servers and takes minutes")
	}
	lab.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 25*time.Minute) // it may have to build them
		defer cancel()
		if lab.stack, lab.err = stack.Open(ctx, stack.Options{S3: true, Progress: show.To(os.Stderr)}); lab.err != nil {
			return
		}
		var sidecar stack.Program
		if sidecar, lab.err = lab.stack.Sidecar(ctx, stack.SidecarOptions{}); lab.err != nil {
			return
		}
		lab.sidecar = sidecar.Config
		lab.controller, lab.err = lab.stack.Controller(ctx, stack.ControllerOptions{})
	})
	if lab.err != nil {
		t.Fatal(lab.err)
	}
	return lab.stack
}
