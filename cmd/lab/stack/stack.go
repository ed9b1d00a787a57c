package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/custody-storage/custody/api/v1alpha1"
	"github.com/custody-storage/custody/cmd/lab/show"
	"github.com/custody-storage/custody/cosi/api/v1alpha2"
	"github.com/custody-storage/custody/embedded"
	"github.com/custody-storage/custody/embedded/toolbox"
)

// Options says what to run.
type Options struct {
	// Dir holds all data; "" is a temporary folder, which Close removes.
	Dir string
	// Keep has Close leave a temporary folder where it is.
	Keep bool
	// Ports on loopback; 0 is the port of the last start with this Dir, or else a
	// free one.
	APIPort, EtcdPort, S3Port int
	// S3 says whether an S3 server is wanted.
	S3       bool
	Progress *show.Progress
}

// Stack is what runs. Its methods may be called from any goroutine.
type Stack struct {
	Kube *embedded.Kube
	S3   *embedded.S3 // nil unless asked for
	// Client may do everything. It watches too.
	Client client.WithWatch

	options Options
	dir     string
	sockets string // "" until one is wanted and Dir is too long for it
	binary  string

	mu        sync.Mutex
	processes []*embedded.Process // in the order of their start
	stopping  map[*embedded.Process]bool
	died      chan error
}

// Open starts the Kubernetes API and, if asked for, the S3 server, builds
// bin/custody, and installs definitions, roles and the admission policy. What it
// needs is built first, which takes minutes the first time. ctx is for the start
// only.
func Open(ctx context.Context, o Options) (*Stack, error) {
	s := &Stack{options: o, dir: o.Dir, stopping: map[*embedded.Process]bool{}, died: make(chan error, 1)}
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Stack) open(ctx context.Context) error {
	// One after the other: they write their progress to the same terminal.
	box, err := toolbox.Open(s.options.Progress.Out())
	if err != nil {
		return err
	}
	if _, err := box.Kube(ctx); err != nil {
		return err
	}
	if s.options.S3 {
		if _, err := box.Path(ctx, "versitygw"); err != nil {
			return err
		}
	}
	if s.dir == "" {
		if s.dir, err = os.MkdirTemp("", "custody-lab-"); err != nil {
			return fmt.Errorf("make a folder for the data: %w", err)
		}
	} else if s.dir, err = filepath.Abs(s.dir); err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	// The servers start while the compiler works.
	parts, ctx := errgroup.WithContext(ctx)
	parts.Go(func() error { return s.startKube(ctx) })
	parts.Go(func() error { return s.build(ctx, box.Root()) })
	if s.options.S3 {
		parts.Go(func() error { return s.startS3(ctx) })
	}
	return parts.Wait()
}

func (s *Stack) startKube(ctx context.Context) (err error) {
	work := s.options.Progress.Begin("Kubernetes API")
	defer func() { _ = work.End(err) }()
	s.Kube, err = embedded.StartKube(ctx, embedded.KubeOptions{
		Dir: filepath.Join(s.dir, "kube"), APIPort: s.options.APIPort, EtcdPort: s.options.EtcdPort, Progress: s.options.Progress.Out(),
	})
	if err != nil {
		return err
	}
	if s.Client, err = newClient(s.Kube); err != nil {
		return err
	}
	return s.install(ctx)
}

func newClient(kube *embedded.Kube) (client.WithWatch, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, v1alpha2.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	c, err := client.NewWithWatch(kube.Config(), client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("make a client of the Kubernetes API: %w", err)
	}
	return c, nil
}

func (s *Stack) startS3(ctx context.Context) (err error) {
	work := s.options.Progress.Begin("S3 server")
	defer func() { _ = work.End(err) }()
	s.S3, err = embedded.StartS3(ctx, embedded.S3Options{
		Dir: filepath.Join(s.dir, "s3"), Port: s.options.S3Port, Progress: s.options.Progress.Out(),
	})
	return err
}

// In is a path in the data folder.
func (s *Stack) In(names ...string) string {
	return filepath.Join(append([]string{s.dir}, names...)...)
}

// socketLimit is what Linux and others take as the path of a unix socket, with
// room for a name.
const socketLimit = 100

// Socket is the endpoint of a unix socket of that name.
func (s *Stack) Socket(name string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	path := s.In(name + ".sock")
	if len(path) > socketLimit {
		if s.sockets == "" {
			dir, err := os.MkdirTemp("", "custody-")
			if err != nil {
				return "", fmt.Errorf("make a folder for sockets, for which %s is too long a name: %w", s.dir, err)
			}
			s.sockets = dir
		}
		path = filepath.Join(s.sockets, name+".sock")
	}
	return "unix://" + path, nil
}

// Start runs a program and watches over it until Close or End.
func (s *Stack) Start(ctx context.Context, c embedded.Command) (*embedded.Process, error) {
	work := s.options.Progress.Begin("%s", c.Name)
	p, err := embedded.StartProcess(ctx, c)
	if work.End(err) != nil {
		return nil, err
	}
	s.mu.Lock()
	s.processes = append(s.processes, p)
	s.mu.Unlock()
	go func() {
		<-p.Done()
		s.mu.Lock()
		asked := s.stopping[p]
		s.mu.Unlock()
		if !asked {
			err := p.Err()
			if err == nil {
				err = fmt.Errorf("%s ended by itself, with exit status 0; end of its log %s:\n%s", c.Name, c.Log, p.Tail(15))
			}
			s.report(err)
		}
	}()
	return p, nil
}

func (s *Stack) report(err error) {
	select {
	case s.died <- err:
	default: // one death is enough to say
	}
}

// End ends a program by the function given, such as its Stop or Kill. Its death is
// no accident then.
func (s *Stack) End(p *embedded.Process, how func() error) error {
	s.mu.Lock()
	s.stopping[p] = true
	s.mu.Unlock()
	return how()
}

// Died tells of the first program that dies unasked, with the end of its log.
func (s *Stack) Died() <-chan error { return s.died }

// Watch tells Died of the death of the servers too, until the stack is closed.
func (s *Stack) Watch() {
	go func() {
		<-s.Kube.Done()
		if err := s.Kube.Err(); err != nil {
			s.report(err)
		}
	}()
	if s.S3 != nil {
		p := s.S3.Process()
		go func() {
			<-p.Done()
			if err := p.Err(); err != nil {
				s.report(err)
			}
		}()
	}
}

// Close stops everything: the programs, the last started first, then the servers.
// It may be called again, and does nothing then.
func (s *Stack) Close() error {
	s.mu.Lock()
	processes := s.processes
	s.processes = nil
	for _, p := range processes {
		s.stopping[p] = true
	}
	s.mu.Unlock()
	var errs []error
	for i := len(processes) - 1; i >= 0; i-- {
		errs = append(errs, processes[i].Stop())
	}
	if s.S3 != nil {
		errs = append(errs, s.S3.Stop())
	}
	if s.Kube != nil {
		errs = append(errs, s.Kube.Stop())
	}
	if s.sockets != "" {
		errs = append(errs, os.RemoveAll(s.sockets))
	}
	if s.options.Dir == "" && !s.options.Keep && s.dir != "" {
		errs = append(errs, os.RemoveAll(s.dir))
	}
	return errors.Join(errs...)
}
