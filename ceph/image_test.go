package ceph

import "testing"

func TestImageNames(t *testing.T) {
	for _, i := range []Image{{"rbd", "", "csi-vol-1", "1f"}, {"fast", "tenant", "a.b_c", "9e"}} {
		if got, err := ParseImage(i.String()); err != nil || got != i {
			t.Errorf("%s: %+v, %v", i, got, err)
		}
	}
	for _, text := range []string{"", "rbd/a/b", "rbd//a/", "/n/a/1", "rbd///1", "rbd//a@snap/1", "-p//a/1", "rbd//a b/1", "rbd//a/1/2"} {
		if i, err := ParseImage(text); err == nil {
			t.Errorf("%q was read as %+v", text, i)
		}
	}
}

func TestParseInstance(t *testing.T) {
	for text, want := range map[string]string{
		"10.0.0.1:0/7":     "10.0.0.1:0/7",
		"v1:10.0.0.1:0/7":  "10.0.0.1:0/7",
		"v2:[fd00::1]:0/7": "[fd00::1]:0/7",
	} {
		if got, err := ParseInstance(text); err != nil || string(got) != want {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"", "10.0.0.1", "10.0.0.1:0/0", "10.0.0.1:0", "10.0.0.1/7", "host:0/7", "[fe80::1%eth0]:0/7", "[::]:0/7",
		"cidr:10.0.0.0:0/24", "[v2:10.0.0.1:0/7,v1:10.0.0.1:0/7]",
	} {
		if got, err := ParseInstance(text); err == nil {
			t.Errorf("%q was read as %s", text, got)
		}
	}
}

func TestKeyIn(t *testing.T) {
	for text, want := range map[string]Secret{
		" AQ==\n":                    "AQ==",
		"[client.u]\n\tkey = AQ==\n": "AQ==",
		"[client.v]\nkey=no\n[client.u]\ncaps mon = \"allow r\"\nkey=AQ==": "AQ==",
		"[client.v]\nkey = no\n": "",
	} {
		if got := keyIn(text, "u"); got != want {
			t.Errorf("%q: %q", text, string(got))
		}
	}
}
