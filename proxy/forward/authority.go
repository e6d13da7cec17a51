package forward

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

// Authority is the local certificate authority of the forward listener. Its own
// certificate is constrained to the names of its hosts (RFC 5280, 4.2.1.10), so
// its signatures are worthless for any other name, even to a thief of its key.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	now  func() time.Time

	mu     sync.Mutex
	leaves map[string]*tls.Certificate // by host, of which there are few
}

// Lifetimes. A leaf is renewed halfway through its own. It begins early, for
// clients whose clock is slow.
const (
	authorityLife = 5 * 365 * 24 * time.Hour
	leafLife      = 7 * 24 * time.Hour
	clockSkew     = time.Hour
)

// maxIntercept is the maximum number of hosts of one authority, and so of the
// leaves that it keeps.
const maxIntercept = 64

// CreateAuthority returns a new authority for hosts, as PEM. The key is not
// encrypted: keep it in a file of mode 0600.
func CreateAuthority(hosts []string, now time.Time) (certPEM, keyPEM []byte, err error) {
	if len(hosts) == 0 || len(hosts) > maxIntercept {
		return nil, nil, fmt.Errorf("create certificate authority: 1 to %d hosts are needed", maxIntercept)
	}
	for _, h := range hosts {
		if !hostName(h) {
			return nil, nil, errors.New("create certificate authority: hosts must be plain host names")
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("create certificate authority: %w", err)
	}
	serial, err := serialNumber()
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber:                serial,
		Subject:                     pkix.Name{CommonName: "Remora local authority " + hex.EncodeToString(serial.Bytes()[:4])},
		NotBefore:                   now.Add(-clockSkew),
		NotAfter:                    now.Add(authorityLife),
		IsCA:                        true,
		BasicConstraintsValid:       true,
		MaxPathLenZero:              true,
		KeyUsage:                    x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		ExtKeyUsage:                 []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		PermittedDNSDomainsCritical: true,
		PermittedDNSDomains:         hosts,
		ExcludedIPRanges:            everyAddress(), // name constraints do not cover addresses
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, nil, fmt.Errorf("create certificate authority: %w", err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, fmt.Errorf("create certificate authority: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}), nil
}

// OpenAuthority reads what CreateAuthority made. It refuses a certificate
// without name constraints, which could be used against every site that the
// client visits if its key were stolen. Errors quote neither.
func OpenAuthority(certPEM, keyPEM []byte) (*Authority, error) {
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("open certificate authority: %w", err)
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	switch cert := pair.Leaf; {
	case !ok:
		return nil, errors.New("open certificate authority: the key is not an ECDSA key")
	case !cert.IsCA || cert.KeyUsage&x509.KeyUsageCertSign == 0:
		return nil, errors.New("open certificate authority: the certificate may not sign others")
	case !cert.PermittedDNSDomainsCritical || len(cert.PermittedDNSDomains) == 0 || !excludesAddresses(cert):
		return nil, errors.New("open certificate authority: the certificate is not constrained to the names of its hosts")
	default:
		return &Authority{cert: cert, key: key, now: time.Now, leaves: map[string]*tls.Certificate{}}, nil
	}
}

// everyAddress returns all IP addresses, since a certificate may be for an
// address instead of a name.
func everyAddress() []*net.IPNet {
	return []*net.IPNet{
		{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)},
		{IP: net.IPv6zero, Mask: net.CIDRMask(0, 128)},
	}
}

func excludesAddresses(cert *x509.Certificate) bool {
	for _, all := range everyAddress() {
		if !slices.ContainsFunc(cert.ExcludedIPRanges, func(n *net.IPNet) bool { return n.String() == all.String() }) {
			return false
		}
	}
	return true
}

// Hosts returns the names for which the authority may sign, with all names
// below them.
func (a *Authority) Hosts() []string { return slices.Clone(a.cert.PermittedDNSDomains) }

// Expires returns when clients stop trusting the authority.
func (a *Authority) Expires() time.Time { return a.cert.NotAfter }

// Subject returns the name that a client's list of authorities shows.
func (a *Authority) Subject() string { return a.cert.Subject.CommonName }

// Fingerprint returns the SHA-256 of the certificate, in hex.
func (a *Authority) Fingerprint() string {
	sum := sha256.Sum256(a.cert.Raw)
	return hex.EncodeToString(sum[:])
}

// covers reports whether clients accept what the authority signs for host.
func (a *Authority) covers(host string) bool {
	return a.now().Before(a.cert.NotAfter) && slices.ContainsFunc(a.cert.PermittedDNSDomains, func(d string) bool {
		return host == d || strings.HasSuffix(host, "."+d)
	})
}

// leaf returns a certificate for host, which must be an intercepted one.
func (a *Authority) leaf(host string) (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	if c := a.leaves[host]; c != nil && now.Before(c.Leaf.NotAfter.Add(-leafLife/2)) {
		return c, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make certificate: %w", err)
	}
	serial, err := serialNumber()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: host},
		DNSNames:     []string{host},
		NotBefore:    now.Add(-clockSkew),
		NotAfter:     now.Add(leafLife),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if template.NotAfter.After(a.cert.NotAfter) {
		template.NotAfter = a.cert.NotAfter
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return nil, fmt.Errorf("make certificate: %w", err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("make certificate: %w", err)
	}
	c := &tls.Certificate{Certificate: [][]byte{der, a.cert.Raw}, PrivateKey: key, Leaf: parsed}
	if len(a.leaves) >= maxIntercept {
		clear(a.leaves)
	}
	a.leaves[host] = c
	return c, nil
}

// serialNumber returns a positive number with 127 random bits, never short.
func serialNumber() (*big.Int, error) {
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		return nil, fmt.Errorf("make serial number: %w", err)
	}
	b[0] = b[0]&0x7f | 0x40
	return new(big.Int).SetBytes(b[:]), nil
}

// hostName reports whether s is a DNS name of lower-case letters, digits and
// hyphens, without a port, and not an IP address.
func hostName(s string) bool {
	if s == "" || len(s) > 253 {
		return false
	}
	if _, err := netip.ParseAddr(s); err == nil {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' ||
			bytes.ContainsFunc([]byte(label), func(r rune) bool { return r != '-' && (r < 'a' || r > 'z') && (r < '0' || r > '9') }) {
			return false
		}
	}
	return true
}
