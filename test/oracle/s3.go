package oracle

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	custodyv1 "github.com/custody-storage/custody/api/v1alpha1"
	cosi "github.com/custody-storage/custody/cosi/api/v1alpha2"
	"github.com/custody-storage/custody/embedded"
)

// OfS3 lists what exists in an S3 server with names that COSI gives, for the
// driver that serves it. It reads the server's disk: no request can be lost, and
// what the server doesn't show (a bucket half made when it was killed) counts.
func OfS3(server *embedded.S3, driver string) Inventory { return &onDisk{server.Dir(), driver} }

type onDisk struct{ dir, driver string }

func (s *onDisk) Items(context.Context) ([]Item, error) {
	var items []Item
	buckets, err := os.ReadDir(filepath.Join(s.dir, "buckets"))
	if err != nil {
		return nil, fmt.Errorf("S3 server's buckets: %w", err)
	}
	for _, b := range buckets {
		if strings.HasPrefix(b.Name(), cosi.BucketNamePrefix) {
			items = append(items, Item{Driver: s.driver, Kind: custodyv1.KindBucket, ID: b.Name(), Name: b.Name()})
		}
	}
	var users struct {
		AccessAccounts map[string]json.RawMessage `json:"accessAccounts"`
	}
	text, err := os.ReadFile(filepath.Join(s.dir, "accounts", "users.json"))
	if err != nil {
		return nil, fmt.Errorf("S3 server's accounts: %w", err)
	}
	if err := json.Unmarshal(text, &users); err != nil {
		return nil, fmt.Errorf("S3 server's accounts: %w", err)
	}
	for id := range users.AccessAccounts {
		if strings.HasPrefix(id, cosi.AccountNamePrefix) {
			items = append(items, Item{Driver: s.driver, Kind: custodyv1.KindAccess, ID: id, Name: id, Keys: 1})
		}
	}
	return items, nil
}
