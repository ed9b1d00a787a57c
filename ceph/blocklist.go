//go:build ceph

package ceph

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// blocklistTime is how the blocklist writes a time.
const blocklistTime = "2006-01-02T15:04:05.999999-0700"

// parseBlocklist reads the first of what are two lists, one after the other, where the cluster knows ranges too.
func parseBlocklist(text []byte) ([]BlocklistEntry, error) {
	var listed []struct{ Addr, Until string }
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&listed); err != nil {
		return nil, fmt.Errorf("read the blocklist: %w", err)
	}
	entries := []BlocklistEntry{}
	for _, l := range listed {
		instance, err := ParseInstance(l.Addr)
		if err != nil {
			continue // a whole machine
		}
		until, err := time.Parse(blocklistTime, l.Until)
		if err != nil {
			return nil, fmt.Errorf("blocklist entry %s: time %q: %w", l.Addr, l.Until, err)
		}
		entries = append(entries, BlocklistEntry{instance, until})
	}
	return entries, nil
}
