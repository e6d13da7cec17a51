package forward

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"
)

// Whoever steals the key gets the hosts, and no address either.
func TestAuthoritySignsForNoAddress(t *testing.T) {
	a, roots := newAuthority(t, interceptedHost)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for _, ip := range []string{"192.0.2.1", "2001:db8::1"} {
		der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
			SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.ParseIP(ip)},
			NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		}, a.cert, key.Public(), a.key)
		if err != nil {
			t.Fatal(err)
		}
		leaf, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: ip}); err == nil {
			t.Errorf("a certificate for %s is trusted", ip)
		}
	}
}

func TestAuthority(t *testing.T) {
	a, roots := newAuthority(t, interceptedHost, "llm.example")
	now := time.Now()
	a.now = func() time.Time { return now }
	verify := func(host string) error {
		t.Helper()
		c, err := a.leaf(host)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: host, CurrentTime: now})
		return err
	}
	for host, want := range map[string]bool{interceptedHost: true, "llm.example": true, "eu.llm.example": true, "bank.example": false, "openai.com": false} {
		if got := verify(host) == nil; got != want || a.covers(host) != want {
			t.Errorf("%s: valid %v, covered %v, want %v", host, got, a.covers(host), want)
		}
	}
	first, _ := a.leaf(interceptedHost)
	if again, _ := a.leaf(interceptedHost); again != first {
		t.Error("a leaf was made twice")
	}
	now = now.Add(leafLife/2 + time.Minute)
	if later, _ := a.leaf(interceptedHost); later == first || verify(interceptedHost) != nil {
		t.Error("the leaf was not made anew")
	}
	for i := range 2 * maxIntercept {
		if _, err := a.leaf(fmt.Sprintf("h%d.llm.example", i)); err != nil || len(a.leaves) > maxIntercept {
			t.Fatalf("%d leaves kept, %v", len(a.leaves), err)
		}
	}
	now = a.Expires().Add(-time.Hour)
	if c, err := a.leaf(interceptedHost); err != nil || c.Leaf.NotAfter.After(a.Expires()) {
		t.Errorf("a leaf outlives its authority: %v", err)
	}
	now = a.Expires().Add(time.Hour)
	if a.covers(interceptedHost) {
		t.Error("an authority that has expired still covers its hosts")
	}
}

func TestOpenAuthorityRefuses(t *testing.T) {
	cert, key, err := CreateAuthority([]string{interceptedHost}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	_, otherKey, _ := CreateAuthority([]string{interceptedHost}, time.Now())
	a, _ := OpenAuthority(cert, key)
	leaf, _ := a.leaf(interceptedHost)
	der, _ := x509.MarshalPKCS8PrivateKey(leaf.PrivateKey)
	leafCert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf.Certificate[0]})
	leafKey := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	for name, pair := range map[string][2][]byte{
		"another's key": {cert, otherKey}, "no certificate": {nil, key}, "no key": {cert, nil}, "a leaf": {leafCert, leafKey}, "not PEM": {[]byte("x"), []byte("y")},
	} {
		if _, err := OpenAuthority(pair[0], pair[1]); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
	for _, hosts := range [][]string{nil, {"*.example"}, {"10.0.0.1"}, {"host:443"}, {"UPPER.example"}, {""}, {"a..b"}, {"-a.b"}} {
		if _, _, err := CreateAuthority(hosts, time.Now()); err == nil {
			t.Errorf("hosts %q: got no error", hosts)
		}
	}
}

func TestConfigNamesTheEntry(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Intercept = []string{"ok.example", "Not.Lower", "ok.example=up", "x.example=", "10.1.2.3"}
	cfg.Others = "drop"
	err := cfg.Validate()
	for _, want := range []string{"intercept[1]:", "intercept[2]: duplicate host", "intercept[3]:", "intercept[4]:", "others: must be"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if strings.Contains(err.Error(), "intercept[0]") {
		t.Errorf("a good entry is refused: %v", err)
	}
}
