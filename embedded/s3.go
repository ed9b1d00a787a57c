package embedded

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/custody-storage/custody/embedded/toolbox"
)

// DefaultRegion is the region that the S3 server says it is in, and that requests
// must be signed for.
const DefaultRegion = "us-east-1"

// S3Options says what S3 server to run. The zero value is one for a test.
type S3Options struct {
	// Dir holds buckets, accounts and the log; "" is a temporary folder.
	Dir string
	// Port on loopback; 0 is the port of the last start with this Dir, or else a
	// free one.
	Port int
	// AccessKey and SecretKey of the root account. Empty ones are those of the last
	// start with this Dir, or else made up.
	AccessKey, SecretKey string
	// Region; "" is DefaultRegion.
	Region string
	// Progress is where the building of the server is shown; nil is standard error.
	Progress io.Writer
}

// S3 is a running versitygw: an S3 server over a folder, with accounts of its
// own. They are made by its admin API (PATCH /create-user and so on, signed as S3
// requests are), on the same endpoint; the tests of this package show how. Each
// account has one access key. A bucket belongs to an account, and its policy may
// let others in.
type S3 struct {
	folder *folder
	state  s3State
	region string

	mu      sync.Mutex
	process *Process
	stopped bool
}

// s3State is what a later start with the same folder must find again, beside the
// data.
type s3State struct {
	Port      int    `json:"port"`
	AccessKey string `json:"accessKey"`
	SecretKey string `json:"secretKey"`
}

const s3StateFile = "root.json"

// StartS3 runs versitygw and returns when it answers. It builds the server if
// need be. ctx is for the start only: the server runs until Stop.
//
// A port in use is a [*PortError]. A folder in use is an error that names the
// process which uses it.
func StartS3(ctx context.Context, o S3Options) (*S3, error) {
	if o.Progress == nil {
		o.Progress = os.Stderr
	}
	if (o.AccessKey == "") != (o.SecretKey == "") {
		return nil, errors.New("start S3 server: AccessKey and SecretKey are given together or not at all")
	}
	box, err := toolbox.Open(o.Progress)
	if err != nil {
		return nil, fmt.Errorf("start S3 server: %w", err)
	}
	program, err := box.Path(ctx, "versitygw")
	if err != nil {
		return nil, fmt.Errorf("start S3 server: %w", err)
	}
	f, err := openFolder(ctx, o.Dir, "s3")
	if err != nil {
		return nil, err
	}
	s := &S3{folder: f, region: o.Region}
	if s.region == "" {
		s.region = DefaultRegion
	}
	if err := s.start(ctx, o, program); err != nil {
		return nil, errors.Join(fmt.Errorf("start S3 server: %w", err), f.close())
	}
	return s, nil
}

func (s *S3) start(ctx context.Context, o S3Options, program string) error {
	if _, err := s.folder.load(s3StateFile, &s.state); err != nil {
		return err
	}
	if o.AccessKey != "" {
		s.state.AccessKey, s.state.SecretKey = o.AccessKey, o.SecretKey
	} else if s.state.AccessKey == "" {
		s.state.AccessKey, s.state.SecretKey = "root", rand.Text()
	}
	for _, dir := range []string{"buckets", "accounts"} {
		if err := os.MkdirAll(s.folder.in(dir), 0o700); err != nil {
			return err
		}
	}
	metadata, err := s.metadataArgs()
	if err != nil {
		return err
	}
	process, err := startOnPort(ctx, PortError{Server: "versitygw", Port: o.Port, Option: "S3Options.Port", Flag: "s3-port"}, &s.state.Port,
		func() (*Process, error) { return StartProcess(ctx, s.command(program, metadata)) })
	if err != nil {
		return err
	}
	s.process = process
	if err := s.folder.save(s3StateFile, s.state); err != nil {
		return errors.Join(err, process.Kill())
	}
	return nil
}

func (s *S3) command(program string, metadata []string) Command {
	args := []string{
		"--port", address(s.state.Port),
		"--region", s.region,
		"--iam-dir", s.folder.in("accounts"),
		"--health", "/healthz",
		"--keep-alive",
		"posix",
	}
	args = append(append(args, metadata...), s.folder.in("buckets"))
	return Command{
		Name: "versitygw", Path: program, Args: args, Log: s.folder.in("versitygw.log"),
		Env:   plainEnv("ROOT_ACCESS_KEY="+s.state.AccessKey, "ROOT_SECRET_KEY="+s.state.SecretKey),
		Ready: httpReady(oneShot(), s.Endpoint()+"/healthz"), inherit: []*os.File{s.folder.lock},
	}
}

// metadataArgs puts S3 metadata into files of their own where the file system
// has no extended attributes for users, and keeps to that for the folder's life.
func (s *S3) metadataArgs() ([]string, error) {
	side := s.folder.in("metadata")
	if _, err := os.Stat(side); err != nil {
		probe := s.folder.in("buckets")
		err := unix.Setxattr(probe, "user.custody.probe", []byte("x"), 0)
		if err == nil {
			return nil, unix.Removexattr(probe, "user.custody.probe")
		}
		if !errors.Is(err, unix.ENOTSUP) {
			return nil, fmt.Errorf("try an extended attribute on %s: %w", probe, err)
		}
		if err := os.MkdirAll(side, 0o700); err != nil {
			return nil, err
		}
	}
	return []string{"--sidecar", side}, nil
}

// Endpoint is the server's URL. Buckets are in its path, not in its host name.
func (s *S3) Endpoint() string { return "http://" + address(s.state.Port) }

// Region is what requests must be signed for.
func (s *S3) Region() string { return s.region }

// Root returns the keys of the root account, which may do everything.
func (s *S3) Root() (accessKey, secretKey string) { return s.state.AccessKey, s.state.SecretKey }

// Dir is the data folder; it holds the server's log too.
func (s *S3) Dir() string { return s.folder.path }

// Process returns the server's process, to kill, pause, resume or watch it. It
// changes with Restart.
func (s *S3) Process() *Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process
}

// Restart starts the server again after its death, on the same port with the
// same data, and returns when it answers.
func (s *S3) Restart(ctx context.Context) error {
	p, err := s.Process().Restart(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.process = p
	s.mu.Unlock()
	return nil
}

// Stop ends the server and removes a temporary folder. It may be called again,
// and does nothing then.
func (s *S3) Stop() error {
	s.mu.Lock()
	again, process := s.stopped, s.process
	s.stopped = true
	s.mu.Unlock()
	if again {
		return nil
	}
	return errors.Join(process.Stop(), s.folder.close())
}
