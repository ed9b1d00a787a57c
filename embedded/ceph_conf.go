package embedded

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// section is one section of ceph.conf.
type section struct {
	name   string
	values map[string]string
}

// conf is the cluster's ceph.conf. Nothing in it is secret: keys are in keyrings.
func (c *Ceph) conf() string {
	d := c.folder
	global := map[string]string{
		"fsid":                  c.fsid,
		"mon_initial_members":   "a",
		"mon_host":              c.Monitors(),
		"public_addr":           c.options.IP,
		"cluster_addr":          c.options.IP,
		"ms_bind_port_min":      strconv.Itoa(c.ports.osdFirst),
		"ms_bind_port_max":      strconv.Itoa(c.ports.osdFirst + cephOSDPorts),
		"auth_cluster_required": "cephx",
		"auth_service_required": "cephx",
		"auth_client_required":  "cephx",
		// As in every cluster that is up to date (CVE-2021-20288).
		"auth_allow_insecure_global_id_reclaim": "false",
		"keyring":                               d.in("keyring"),
		"run_dir":                               d.path,
		"admin_socket":                          "",
		"pid_file":                              "",
		"log_file":                              "",
		"log_to_stderr":                         "true",
		"log_to_file":                           "false",
		"crash_dir":                             d.path,
		"debug_ms":                              "0/0",
		"debug_osd":                             "0/0",
		"debug_mon":                             "0/0",
		"debug_paxos":                           "0/0",
		"debug_auth":                            "0/0",
		"debug_rocksdb":                         "0/0",
		"debug_bluestore":                       "0/0",

		// One OSD is all there is.
		"osd_pool_default_size":              "1",
		"osd_pool_default_min_size":          "1",
		"osd_pool_default_pg_num":            "8",
		"osd_pool_default_pgp_num":           "8",
		"osd_pool_default_pg_autoscale_mode": "off",
		"osd_crush_chooseleaf_type":          "0",
		"mon_allow_pool_size_one":            "true",
		"mon_allow_pool_delete":              "true",
		"mon_osd_crush_smoke_test":           "false",
		"mon_max_pg_per_osd":                 "1000",
		"mon_data_avail_warn":                "2",
		"mon_data_avail_crit":                "1",

		// Otherwise each change of the map, a pool or a fence, waits up to a second for company.
		"paxos_propose_interval": "0.05",
		"paxos_min_wait":         "0.01",
		"mon_tick_interval":      "1",
	}
	maps.Copy(global, c.options.Settings)
	store := "memstore"
	if c.options.Durable {
		store = "bluestore"
	}
	size := strconv.Itoa(cephDataBytes)
	return render(
		section{"global", global},
		section{"client", map[string]string{"log_to_stderr": "false"}},
		section{"mon", map[string]string{"mon_data": d.in("mon"), "mon_cluster_log_to_file": "false"}},
		section{"osd", map[string]string{
			"osd_data":                     d.in("osd"),
			"osd_objectstore":              store,
			"bluestore_block_size":         size,
			"bluestore_block_create":       "true",
			"bluestore_fsck_on_mount":      "false",
			"bluestore_cache_autotune":     "false",
			"bluestore_cache_size":         strconv.Itoa(64 << 20),
			"memstore_device_bytes":        size,
			"osd_op_num_shards":            "2",
			"osd_op_num_threads_per_shard": "1",
			"osd_max_pg_log_entries":       "500",
			"osd_min_pg_log_entries":       "100",
			"osd_scrub_load_threshold":     "0.01",
		}},
		section{"client.rgw.a", map[string]string{
			"rgw_data":                  d.in("rgw"),
			"rgw_frontends":             "beast endpoint=" + c.at(c.ports.rgw),
			"rgw_thread_pool_size":      "16",
			"rgw_enable_usage_log":      "false",
			"rgw_rados_pool_pg_num_min": "8",
			"log_to_stderr":             "true",
		}},
	)
}

func render(sections ...section) string {
	var b strings.Builder
	for _, s := range sections {
		fmt.Fprintf(&b, "[%s]\n", s.name)
		for _, key := range slices.Sorted(maps.Keys(s.values)) {
			fmt.Fprintf(&b, "%s = %s\n", key, s.values[key])
		}
	}
	return b.String()
}

// makeKeyrings makes the keys that a cluster begins with.
func (c *Ceph) makeKeyrings() error {
	var b strings.Builder
	for _, e := range []struct {
		name string
		caps map[string]string
	}{
		{"mon.", map[string]string{"mon": "allow *"}},
		{"client.admin", map[string]string{"mon": "allow *", "osd": "allow *", "mgr": "allow *", "mds": "allow *"}},
		{"osd.0", map[string]string{"mon": "allow profile osd", "mgr": "allow profile osd", "osd": "allow *"}},
		{"client.rgw.a", map[string]string{"mon": "allow rw", "mgr": "allow rw", "osd": "allow rwx"}},
	} {
		fmt.Fprintf(&b, "[%s]\nkey = %s\n", e.name, newCephKey())
		for _, service := range slices.Sorted(maps.Keys(e.caps)) {
			fmt.Fprintf(&b, "caps %s = \"%s\"\n", service, e.caps[service])
		}
	}
	return writeFile(c.folder.in("keyring"), []byte(b.String()))
}

// newCephKey makes a cephx secret: type 1 (AES), time of making, length and 16 random bytes, little-endian
// (CryptoKey::encode in Ceph's src/auth/Crypto.cc).
func newCephKey() string {
	secret := make([]byte, 16)
	rand.Read(secret) // never fails (crypto/rand)
	var b bytes.Buffer
	now := time.Now()
	for _, v := range []any{uint16(1), uint32(now.Unix()), uint32(now.Nanosecond()), uint16(len(secret)), secret} {
		if err := binary.Write(&b, binary.LittleEndian, v); err != nil {
			panic(err) // fixed sizes into memory
		}
	}
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

func dialable(ctx context.Context, ip string, port int) error {
	conn, err := (&net.Dialer{Timeout: readyDeadline}).DialContext(ctx, "tcp", net.JoinHostPort(ip, strconv.Itoa(port)))
	if err != nil {
		return err
	}
	return conn.Close()
}
