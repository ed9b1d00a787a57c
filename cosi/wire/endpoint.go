package wire

import (
	"fmt"
	"net"
	"strings"
)

// maxSocketPath is what Linux takes in sockaddr_un.sun_path, less the final zero.
const maxSocketPath = 107

// ParseEndpoint reads an endpoint as COSI writes them: "unix:///path", "unix:path" or, for trials on one
// machine, "tcp://127.0.0.1:port". It answers network and address as package net takes them. TCP is
// loopback only, since secrets travel here in clear.
func ParseEndpoint(endpoint string) (network, address string, err error) {
	switch {
	case strings.HasPrefix(endpoint, "unix:"):
		path := strings.TrimPrefix(endpoint, "unix:")
		if rest, ok := strings.CutPrefix(path, "//"); ok {
			if !strings.HasPrefix(rest, "/") {
				return "", "", fmt.Errorf("endpoint %q: a path after unix:// starts with a third slash, as in %s", endpoint, DefaultEndpoint)
			}
			path = rest
		}
		if path == "" {
			return "", "", fmt.Errorf("endpoint %q names no socket: write it as %s", endpoint, DefaultEndpoint)
		}
		if len(path) > maxSocketPath {
			return "", "", fmt.Errorf("endpoint %q: the path has %d bytes, a unix socket's at most %d: choose a shorter folder", endpoint, len(path), maxSocketPath)
		}
		return "unix", path, nil
	case strings.HasPrefix(endpoint, "tcp://"):
		address = strings.TrimPrefix(endpoint, "tcp://")
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return "", "", fmt.Errorf("endpoint %q: %w", endpoint, err)
		}
		if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return "", "", fmt.Errorf("endpoint %q: only loopback addresses are taken, because credentials travel here unencrypted; use a unix socket", endpoint)
		}
		return "tcp", address, nil
	}
	return "", "", fmt.Errorf("endpoint %q: write it as %s or tcp://127.0.0.1:PORT", endpoint, DefaultEndpoint)
}
