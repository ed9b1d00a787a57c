package ceph

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestClusters(t *testing.T) {
	good := `
clusters:
- id: prod
  monitors: 10.0.0.1,10.0.0.2
  pools: [rbd, rbd/tenant-a]
  timeout: 20s
  node: {user: custody-node, keyFile: /keys/node}
- {id: lab, monitors: 10.1.0.1, pools: [a/b], heartbeats: beats, controller: {user: c, keyFile: /keys/c}}
`
	c, err := readClusters(t, good)
	if err != nil {
		t.Fatal(err)
	}
	prod, err := c.Entry("prod")
	if err != nil {
		t.Fatal(err)
	}
	config, err := prod.Config(Node)
	if err != nil || config.User != "custody-node" || config.KeyFile != "/keys/node" || config.Timeout.Seconds() != 20 {
		t.Errorf("%+v, %v", config, err)
	}
	if _, err := prod.Config(Controller); err == nil || !strings.Contains(err.Error(), "no identity for the controller") {
		t.Error(err)
	}
	if prod.HeartbeatPool() != "rbd" || !prod.Has("rbd", "tenant-a") || prod.Has("rbd", "tenant-b") {
		t.Errorf("%+v", prod)
	}
	if lab, err := c.Entry("lab"); err != nil || lab.HeartbeatPool() != "beats" || !lab.Has("a", "b") || lab.Has("a", "") {
		t.Errorf("%+v, %v", lab, err)
	}
	for _, id := range []string{"", "other"} {
		if _, err := c.Entry(id); err == nil || !strings.Contains(err.Error(), "prod") {
			t.Errorf("%q: the error should name those that there are: %v", id, err)
		}
	}
}

func TestClustersTellsWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"": "no clusters",
		"clusters: [{id: a, monitors: m, pools: [p], nodes: {}}]":                                "unknown field",
		"clusters: [{id: a, monitors: m, pools: [p]}]":                                           "neither an identity",
		"clusters: [{id: a/b, monitors: m, pools: [p], node: {user: u, keyFile: k}}]":            `id "a/b"`,
		"clusters: [{id: a, pools: [p], node: {user: u, keyFile: k}}]":                           "no monitors",
		"clusters: [{id: a, monitors: m, node: {user: u, keyFile: k}}]":                          "no pools",
		"clusters: [{id: a, monitors: m, pools: [-p], node: {user: u, keyFile: k}}]":             "dash",
		"clusters: [{id: a, monitors: m, pools: [p], node: {user: client.u, keyFile: k}}]":       "client.",
		"clusters: [{id: a, monitors: m, pools: [p], node: {user: u}}]":                          "key file",
		"clusters: [{id: a, monitors: m, pools: [p], timeout: 5, node: {user: u, keyFile: k}}]":  "timeout",
		"clusters: [{id: a, monitors: m, pools: [p], timeout: 1x, node: {user: u, keyFile: k}}]": "timeout",
	} {
		if _, err := readClusters(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; wanted a word of %q", text, err, want)
		}
	}
	twice := `clusters: [{id: a, monitors: m, pools: [p], node: {user: u, keyFile: k}}, {id: a, monitors: m, pools: [p], node: {user: u, keyFile: k}}]`
	if _, err := readClusters(t, twice); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Error(err)
	}
}

func readClusters(t *testing.T, text string) (Clusters, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "clusters.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return ReadClusters(path)
}
