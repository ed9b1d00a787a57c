package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/custody-storage/custody/exclusive"
)

// Identity is how this machine is known. What is empty is read from the machine.
type Identity struct {
	Node    string // the node's name, as the CO has it
	Machine string
	Boot    string
	Root    string // of /sys, /etc and /proc; "" but in a test
}

// Texts that firmware gives where nobody has filled the UUID in.
var blankUUIDs = []string{"00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff", "03000200-0400-0500-0006-000700080009"}

// Who reads the system UUID from the firmware's table (DMI), else /etc/machine-id, and the kernel's boot id. A machine's
// name may be taken by another; its UUID not.
func (i Identity) Who() (exclusive.Who, error) {
	if i.Node == "" {
		return exclusive.Who{}, errors.New("the node's name is not known")
	}
	who := exclusive.Who{Machine: i.Machine, Node: i.Node, Boot: i.Boot}
	var err error
	if who.Machine == "" {
		if who.Machine, err = i.machine(); err != nil {
			return who, err
		}
	}
	if who.Boot == "" {
		if who.Boot, err = i.read("proc/sys/kernel/random/boot_id"); err != nil {
			return who, fmt.Errorf("read the boot id: %w", err)
		}
	}
	return who, nil
}

func (i Identity) machine() (string, error) {
	uuid, errUUID := i.read("sys/class/dmi/id/product_uuid")
	for _, blank := range blankUUIDs {
		if errUUID == nil && uuid == blank {
			errUUID = fmt.Errorf("the firmware's system UUID is %s, as on many machines", uuid)
		}
	}
	if errUUID == nil {
		return uuid, nil
	}
	id, err := i.read("etc/machine-id")
	if err != nil {
		return "", fmt.Errorf("find out which machine this is: %w", errors.Join(errUUID, err))
	}
	return "machine-id-" + id, nil
}

func (i Identity) read(path string) (string, error) {
	text, err := os.ReadFile(filepath.Join("/", i.Root, path))
	if err != nil {
		return "", err
	}
	word := strings.ToLower(strings.TrimSpace(string(text)))
	if word == "" {
		return "", fmt.Errorf("%s is empty", path)
	}
	return word, nil
}
