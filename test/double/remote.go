package double

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
)

// Serve answers a Remote on a unix socket until ctx ends. A socket that a dead
// process left there is replaced.
func (b *Backend) Serve(ctx context.Context, socket string) error {
	l, err := listen(ctx, socket)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/setup", answer(func(struct{}) (Config, error) { return b.Setup() }))
	mux.Handle("/plan", answer(b.Plan))
	mux.Handle("/do", answer(b.Do))
	server := &http.Server{Handler: mux}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve double's backend on %s: %w", socket, err)
	}
	return nil
}

func answer[Q, A any](f func(Q) (A, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q Q
		err := json.NewDecoder(r.Body).Decode(&q)
		if err == nil {
			var a A
			if a, err = f(q); err == nil {
				err = json.NewEncoder(w).Encode(a)
			}
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
}

func listen(ctx context.Context, socket string) (net.Listener, error) {
	// Only one process serves a socket at a time; what is there is left over. The
	// new one is moved into place, so that there is always one to dial.
	fresh := fmt.Sprintf("%s.%d", socket, os.Getpid())
	l, err := new(net.ListenConfig).Listen(ctx, "unix", fresh)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", fresh, err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	if err := os.Rename(fresh, socket); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// Remote is a Backend in another process.
type Remote struct{ client *http.Client }

// NewRemote reaches the backend that serves this socket.
func NewRemote(socket string) *Remote {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}
	return &Remote{&http.Client{Transport: &http.Transport{DialContext: dial, MaxIdleConnsPerHost: 64}}}
}

// Setup implements Storage.
func (r *Remote) Setup() (c Config, err error) { return c, r.ask("setup", struct{}{}, &c) }

// Plan implements Storage.
func (r *Remote) Plan(op Op) (p Plan, err error) { return p, r.ask("plan", op, &p) }

// Do implements Storage.
func (r *Remote) Do(q Request) (a Result, err error) { return a, r.ask("do", q, &a) }

func (r *Remote) ask(path string, q, a any) error {
	text, err := json.Marshal(q)
	if err != nil {
		return err
	}
	resp, err := r.client.Post("http://backend/"+path, "application/json", bytes.NewReader(text)) //nolint:noctx // the backend never hangs, and a call that was begun is carried through
	if err != nil {
		return fmt.Errorf("ask double's backend: %w", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("ask double's backend: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("double's backend answers %s: %s", resp.Status, body)
	}
	return json.Unmarshal(body, a)
}
