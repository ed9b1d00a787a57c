package bench

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"
)

// profile has controller and sidecar profile the CPU for some seconds, if that was
// asked for, while a load runs. The function that it returns waits for the end.
func (b *bench) profile(ctx context.Context, load string) func() error {
	if b.Profiles == "" {
		return func() error { return nil }
	}
	const seconds = 10
	taking, ctx := errgroup.WithContext(ctx)
	for name, url := range b.profiles {
		taking.Go(func() error {
			path := filepath.Join(b.Profiles, name+"-"+load+".pprof")
			if err := fetch(ctx, fmt.Sprintf("%s/profile?seconds=%d", url, seconds), path); err != nil {
				return fmt.Errorf("CPU profile of the %s: %w", name, err)
			}
			b.Progress.Say("CPU profile: %s", path)
			return nil
		})
	}
	return taking.Wait
}

func fetch(ctx context.Context, url, path string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, resp.Status)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if _, err := io.Copy(f, resp.Body); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
