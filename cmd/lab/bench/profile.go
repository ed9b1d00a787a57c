package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
)

// profile has the programs profile their CPU time for some seconds, if that was asked
// for, while a load runs. The function that it returns waits for the end, and has
// them profile their memory.
func (b *bench) profile(ctx context.Context, load string) func() error {
	if b.Profiles == "" {
		return func() error { return nil }
	}
	const seconds = 10
	taking, soon := errgroup.WithContext(ctx)
	for name, url := range b.profiles {
		taking.Go(func() error {
			return b.fetch(soon, fmt.Sprintf("%s/profile?seconds=%d", url, seconds), name+"-"+load+"-cpu")
		})
	}
	return func() error {
		if err := taking.Wait(); err != nil {
			return err
		}
		for name, url := range b.profiles {
			if err := b.fetch(ctx, url+"/heap", name+"-"+load+"-heap"); err != nil {
				return err
			}
		}
		return nil
	}
}

// fetch takes one profile. Only the API server asks who wants it.
func (b *bench) fetch(ctx context.Context, url, name string) error {
	config := b.stack.Kube.Config()
	client := http.DefaultClient
	if strings.HasPrefix(url, config.Host) {
		var err error
		if client, err = rest.HTTPClientFor(config); err != nil {
			return err
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("profile %s: %w", name, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("profile %s: %s answers %s", name, url, resp.Status)
	}
	if err := os.MkdirAll(b.Profiles, 0o755); err != nil {
		return err
	}
	path := filepath.Join(b.Profiles, name+".pprof")
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, resp.Body)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	b.Progress.Say("profile: %s", path)
	return nil
}
