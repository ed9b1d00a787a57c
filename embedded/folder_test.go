package embedded

import (
	"errors"
	"net"
	"os"
	"strconv"
	"syscall"
	"testing"
)

func TestPortInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	err = PortError{Server: "etcd", Port: port, Option: "KubeOptions.EtcdPort", Flag: "etcd-port"}.want()
	wantText(t, err, "port "+strconv.Itoa(port), "etcd", "in use", "--etcd-port", "process "+strconv.Itoa(os.Getpid()))
	if !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("the cause is not wrapped: %v", err)
	}
}

func TestFreePort(t *testing.T) {
	port, err := FreePort()
	if err != nil {
		t.Fatal(err)
	}
	if port < lowestPort || port >= firstEphemeralPort() {
		t.Errorf("port %d may be lost to an outgoing connection", port)
	}
	l, err := net.Listen("tcp", address(port))
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
}

func TestFolderIsHeldByOne(t *testing.T) {
	dir := t.TempDir()
	f, err := openFolder(t.Context(), dir, "kube")
	if err != nil {
		t.Fatal(err)
	}
	_, err = openFolder(t.Context(), dir, "kube")
	wantText(t, err, dir, "in use by process "+strconv.Itoa(os.Getpid()))

	// A child that outlives its parent still holds it.
	c := script(t, "touch ready; exec sleep 60")
	c.inherit = []*os.File{f.lock}
	p := start(t, c)
	if err := f.close(); err != nil {
		t.Fatal(err)
	}
	_, err = openFolder(t.Context(), dir, "kube")
	wantText(t, err, "what it started")
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	f, err = openFolder(t.Context(), dir, "kube")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Errorf("a named folder was removed: %v", err)
	}
}

func TestTemporaryFolder(t *testing.T) {
	f, err := openFolder(t.Context(), "", "kube")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(f.path); !os.IsNotExist(err) {
		t.Errorf("temporary folder left behind: %v", err)
	}
}

func TestBrokenStateFile(t *testing.T) {
	f, err := openFolder(t.Context(), "", "kube")
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	if err := writeFile(f.in("ports.json"), []byte("{")); err != nil {
		t.Fatal(err)
	}
	_, err = f.load("ports.json", &kubeState{})
	wantText(t, err, "ports.json", "begin anew")
}
