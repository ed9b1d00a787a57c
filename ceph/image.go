package ceph

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/custody-storage/custody/exclusive"
)

// Image names an RBD image. Its String is the volume of package exclusive.
type Image struct {
	Pool      string
	Namespace string // "" is the pool's own
	Name      string
	ID        string // the cluster's own id of it, the same for its whole life
}

// String gives POOL/NAMESPACE/NAME/ID, which [ParseImage] reads. Ceph forbids slashes in each part.
func (i Image) String() string {
	return strings.Join([]string{i.Pool, i.Namespace, i.Name, i.ID}, "/")
}

// Spec gives the image as Ceph's tools write it: POOL/[NAMESPACE/]NAME.
func (i Image) Spec() string {
	if i.Namespace == "" {
		return i.Pool + "/" + i.Name
	}
	return i.Pool + "/" + i.Namespace + "/" + i.Name
}

// ParseImage reads what [Image.String] gives.
func ParseImage(volume string) (Image, error) {
	parts := strings.Split(volume, "/")
	if len(parts) != 4 {
		return Image{}, fmt.Errorf("volume %q does not have the form POOL/NAMESPACE/IMAGE/ID", volume)
	}
	i := Image{parts[0], parts[1], parts[2], parts[3]}
	return i, i.Validate()
}

// Validate refuses names that Ceph's tools could take for something else.
func (i Image) Validate() error {
	for _, part := range []struct{ what, name string }{{"pool", i.Pool}, {"image", i.Name}, {"image id", i.ID}} {
		if part.name == "" {
			return fmt.Errorf("the %s of image %q is empty", part.what, i)
		}
	}
	for _, name := range []string{i.Pool, i.Namespace, i.Name, i.ID} {
		if strings.ContainsAny(name, "/@,= \t\n") || strings.HasPrefix(name, "-") {
			return fmt.Errorf("%q in image %q: a name must not begin with a dash nor hold any of / @ , = or space", name, i)
		}
	}
	return nil
}

func (i Image) hold() string   { return "custody.hold." + i.ID }
func (i Image) fences() string { return "custody.fences." + i.ID }

// ParseInstance reads the address of one client, as [ADDR]:PORT/NONCE with or without the name of a messenger before
// it, and gives it in the form of the blocklist, ADDR:PORT/NONCE.
//
// An address without a nonce is refused: to the blocklist that is a whole machine.
func ParseInstance(text string) (exclusive.Instance, error) {
	plain := text
	for _, messenger := range []string{"v1:", "v2:", "any:"} {
		plain = strings.TrimPrefix(plain, messenger)
	}
	address, nonce, ok := strings.Cut(plain, "/")
	if !ok {
		return "", fmt.Errorf("client address %q has no nonce: it would mean a whole machine", text)
	}
	at, err := netip.ParseAddrPort(address)
	if err != nil || at.Addr().Zone() != "" {
		return "", fmt.Errorf("client address %q does not have the form ADDR:PORT/NONCE", text)
	}
	n, err := strconv.ParseUint(nonce, 10, 32)
	if err != nil || n == 0 || at.Addr().IsUnspecified() {
		return "", fmt.Errorf("client address %q does not name one client", text)
	}
	return exclusive.Instance(fmt.Sprintf("%s/%d", at, n)), nil
}
