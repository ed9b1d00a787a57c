package embedded

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// certificateLife is how long certificates are good for: a demo's folder is
// found again after years or never.
const certificateLife = 10 * 365 * 24 * time.Hour

// pki is the certificates and keys of a Kubernetes API server, in a folder.
type pki struct {
	dir                          string
	caPEM, adminCert, adminKey   []byte
	caFile, serverCert, srvKey   string
	signingKey, signingPublicKey string // of ServiceAccount tokens
}

// openPKI loads what is in the folder or, if its last file isn't there, makes
// all of it.
func openPKI(dir string) (*pki, error) {
	p := &pki{
		dir:    dir,
		caFile: filepath.Join(dir, "ca.crt"), serverCert: filepath.Join(dir, "apiserver.crt"), srvKey: filepath.Join(dir, "apiserver.key"),
		signingKey: filepath.Join(dir, "service-accounts.key"), signingPublicKey: filepath.Join(dir, "service-accounts.pub"),
	}
	adminCert, adminKey := filepath.Join(dir, "admin.crt"), filepath.Join(dir, "admin.key")
	_, err := os.Stat(adminKey)
	if errors.Is(err, fs.ErrNotExist) {
		err = p.make(adminCert, adminKey)
	}
	if err != nil {
		return nil, fmt.Errorf("certificates in %s: %w", dir, err)
	}
	for path, into := range map[string]*[]byte{p.caFile: &p.caPEM, adminCert: &p.adminCert, adminKey: &p.adminKey} {
		if *into, err = os.ReadFile(path); err != nil {
			return nil, fmt.Errorf("certificates: %w", err)
		}
	}
	return p, nil
}

func (p *pki) make(adminCert, adminKey string) error {
	caKey, err := newKey()
	if err != nil {
		return err
	}
	ca := &x509.Certificate{
		Subject: pkix.Name{CommonName: "custody embedded"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	if err := writeCert(p.caFile, ca, ca, caKey.Public(), caKey); err != nil {
		return err
	}

	signing, err := newKey()
	if err != nil {
		return err
	}
	if err := writeKey(p.signingKey, signing); err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(signing.Public())
	if err != nil {
		return err
	}
	if err := writePEM(p.signingPublicKey, "PUBLIC KEY", public); err != nil {
		return err
	}

	server := &x509.Certificate{
		Subject:  pkix.Name{CommonName: "kube-apiserver"},
		DNSNames: []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		// The second is the first of the service range: Service "kubernetes".
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 0, 0, 1)},
		KeyUsage:    x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	admin := &x509.Certificate{
		// The group that Kubernetes lets do everything.
		Subject:  pkix.Name{CommonName: "admin", Organization: []string{"system:masters"}},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	for _, leaf := range []struct {
		cert, key string
		template  *x509.Certificate
	}{{p.serverCert, p.srvKey, server}, {adminCert, adminKey, admin}} { // the last file written is the one looked for
		key, err := newKey()
		if err != nil {
			return err
		}
		if err := writeCert(leaf.cert, leaf.template, ca, key.Public(), caKey); err != nil {
			return err
		}
		if err := writeKey(leaf.key, key); err != nil {
			return err
		}
	}
	return nil
}

func newKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

func writeCert(path string, cert, issuer *x509.Certificate, public crypto.PublicKey, signer crypto.Signer) error {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return err
	}
	cert.SerialNumber = serial
	cert.NotBefore = time.Now().Add(-time.Hour)
	cert.NotAfter = cert.NotBefore.Add(certificateLife)
	der, err := x509.CreateCertificate(rand.Reader, cert, issuer, public, signer)
	if err != nil {
		return err
	}
	return writePEM(path, "CERTIFICATE", der)
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return writePEM(path, "EC PRIVATE KEY", der)
}

func writePEM(path, kind string, der []byte) error {
	return writeFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}
