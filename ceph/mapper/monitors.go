package mapper

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// kernelMonitors gives monitors as the kernel wants them, ADDR:PORT separated by commas, from what Ceph's setting
// mon_host may have: addresses with or without a port, or groups such as [v2:10.0.0.1:3300,v1:10.0.0.1:6789].
//
// The kernel speaks the first messenger protocol unless ms_mode says otherwise, and then the second on the other port.
func kernelMonitors(monHost string, options []string) (string, error) {
	protocol, port := "v1", uint16(6789)
	if slices.ContainsFunc(options, func(o string) bool { return strings.HasPrefix(o, "ms_mode=") && o != "ms_mode=legacy" }) {
		protocol, port = "v2", 3300
	}
	found := []string{}
	for _, entry := range strings.FieldsFunc(ungroup(monHost), func(r rune) bool { return strings.ContainsRune(",; ", r) }) {
		address := entry
		for _, p := range []string{"v1", "v2"} {
			if rest, ok := strings.CutPrefix(entry, p+":"); ok {
				if address = rest; p != protocol {
					address = ""
				}
			}
		}
		if address == "" {
			continue
		}
		address, _, _ = strings.Cut(address, "/") // a nonce, 0
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			only, err := netip.ParseAddr(strings.Trim(address, "[]"))
			if err != nil {
				return "", fmt.Errorf("monitor %q is not an address: the kernel looks up no names", entry)
			}
			at = netip.AddrPortFrom(only, port)
		}
		found = append(found, at.String())
	}
	if len(found) == 0 {
		return "", fmt.Errorf("no monitor of %q speaks messenger %s, which the kernel's client is to use (option ms_mode)", monHost, protocol)
	}
	return strings.Join(found, ","), nil
}

// ungroup takes away the brackets around a group, and leaves those of an IPv6 address.
func ungroup(monHost string) string {
	var b strings.Builder
	for i := 0; i < len(monHost); i++ {
		rest := monHost[i:]
		switch {
		case strings.HasPrefix(rest, "[v1:"), strings.HasPrefix(rest, "[v2:"):
		case rest[0] == ']' && (len(rest) == 1 || strings.ContainsRune(",; ", rune(rest[1]))) && grouped(monHost[:i]):
		default:
			b.WriteByte(monHost[i])
		}
	}
	return b.String()
}

// grouped tells whether a group is still open at the end of a text.
func grouped(text string) bool {
	at := max(strings.LastIndex(text, "[v1:"), strings.LastIndex(text, "[v2:"))
	if at < 0 {
		return false
	}
	depth := 0
	for _, r := range text[at:] {
		switch r {
		case '[':
			depth++
		case ']':
			depth--
		}
	}
	return depth > 0
}
