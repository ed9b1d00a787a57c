// Package charts holds the Helm chart of Custody, in the folder custody.
//
// What the chart ships that is made elsewhere, definitions, roles and the admission policy,
// is copied into it by "go generate" ([Copies] says from where), so that an installation
// has what `make up` and the tests run with. A test says when a copy is old, renders the
// chart with helm's own libraries and applies all of it to a real API server.
package charts

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
)

//go:generate go run ./sync

// Copies are the folders and files, from the repository's root, that the chart has copies
// of: source to place in the chart.
func Copies() map[string]string {
	return map[string]string{
		"api/crds":                              "charts/custody-crds/crds",
		"cosi/api/crds":                         "charts/cosi-crds/crds",
		"cosi/controller/rbac/role.yaml":        "files/controller-role.yaml",
		"cosi/sidecar/rbac/role.yaml":           "files/sidecar-role.yaml",
		"intents/rbac/role.yaml":                "files/intents-role.yaml",
		"csi/kube/rbac/role.yaml":               "files/rbd-role.yaml",
		"cosi/controller/admission/policy.yaml": "files/admission.yaml",
	}
}

// Stale names the files of the chart that are not what their sources are, and what is
// wrong. root is the repository's.
func Stale(root string) ([]string, error) {
	var stale []string
	for source, place := range Copies() {
		want, err := read(filepath.Join(root, source), place)
		if err != nil {
			return nil, err
		}
		have, err := read(filepath.Join(root, "charts", "custody", place), place)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		for name, text := range want {
			if !bytes.Equal(have[name], text) {
				stale = append(stale, name+" is not what "+source+" is")
			}
		}
		for name := range have {
			if want[name] == nil {
				stale = append(stale, name+" is there and not in "+source)
			}
		}
	}
	slices.Sort(stale)
	return stale, nil
}

// Sync makes the copies anew.
func Sync(root string) error {
	for source, place := range Copies() {
		want, err := read(filepath.Join(root, source), place)
		if err != nil {
			return err
		}
		chart := filepath.Join(root, "charts", "custody")
		if path.Ext(place) == "" { // a folder: what is no longer in the source goes
			if err := os.RemoveAll(filepath.Join(chart, place)); err != nil {
				return err
			}
		}
		for name, text := range want {
			file := filepath.Join(chart, name)
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(file, text, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// read gives the YAML files of a source, by their place in the chart.
func read(source, place string) (map[string][]byte, error) {
	info, err := os.Stat(source)
	if err != nil {
		return nil, err
	}
	files := map[string]string{place: source}
	if info.IsDir() {
		names, err := filepath.Glob(filepath.Join(source, "*.yaml"))
		if err != nil {
			return nil, err
		}
		if len(names) == 0 {
			return nil, fmt.Errorf("there is no YAML file in %s", source)
		}
		files = map[string]string{}
		for _, name := range names {
			files[path.Join(place, filepath.Base(name))] = name
		}
	}
	texts := map[string][]byte{}
	for place, file := range files {
		if texts[place], err = os.ReadFile(file); err != nil {
			return nil, err
		}
	}
	return texts, nil
}
