package guest

import (
	"debug/elf"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// findModules gives the file of each kernel module by its name.
func findModules(root string) (map[string]string, error) {
	found := map[string]string{}
	err := filepath.WalkDir(filepath.Join(root, "lib", "modules"), func(path string, _ fs.DirEntry, err error) error {
		if name, ok := strings.CutSuffix(filepath.Base(path), ".ko"); ok {
			found[moduleName(name)] = path
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look for kernel modules: %w", err)
	}
	return found, nil
}

// moduleName is a module's name as the kernel has it; files may have dashes.
func moduleName(name string) string { return strings.ReplaceAll(name, "-", "_") }

// load gives the files of modules and of what they need, each after what it needs. (depmod's lists come with an
// installed kernel only; each module names its own needs.)
func (s *System) load(names ...string) ([]string, error) {
	files := []string{}
	for _, name := range names {
		path := s.modules[moduleName(name)]
		if path == "" {
			return nil, fmt.Errorf("%s has no module %s", filepath.Base(s.kernel), name)
		}
		needs, err := moduleNeeds(path)
		if err != nil {
			return nil, err
		}
		first, err := s.load(needs...)
		if err != nil {
			return nil, err
		}
		for _, f := range append(first, path) {
			if !slices.Contains(files, f) {
				files = append(files, f)
			}
		}
	}
	return files, nil
}

// moduleNeeds reads what a module says of itself (kernel, include/linux/module.h: MODULE_INFO).
func moduleNeeds(path string) ([]string, error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read module %s: %w", path, err)
	}
	defer f.Close()
	info := f.Section(".modinfo")
	if info == nil {
		return nil, fmt.Errorf("%s is not a kernel module", path)
	}
	text, err := info.Data()
	if err != nil {
		return nil, fmt.Errorf("read module %s: %w", path, err)
	}
	for entry := range strings.SplitSeq(string(text), "\x00") {
		if needs, ok := strings.CutPrefix(entry, "depends="); ok && needs != "" {
			return strings.Split(needs, ","), nil
		}
	}
	return nil, nil
}
