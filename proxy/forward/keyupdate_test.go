package forward

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/remora-proxy/remora/proxy/listener"
)

// keyUpdates writes what asks a server for new keys, under a client's own,
// which change with each (RFC 8446, 4.6.3 and 7.2).
type keyUpdates struct {
	secret []byte
	seq    uint64 // of records under it
}

// expandLabel is HKDF-Expand-Label of RFC 8446, 7.1, without a context.
func (k *keyUpdates) expandLabel(t *testing.T, label string, length int) []byte {
	t.Helper()
	info := append(binary.BigEndian.AppendUint16(nil, uint16(length)), byte(len("tls13 "+label)))
	key, err := hkdf.Expand(sha256.New, k.secret, string(info)+"tls13 "+label+"\x00", length)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// record appends one of what with its type behind it.
func (k *keyUpdates) record(t *testing.T, out []byte, what ...byte) []byte {
	t.Helper()
	block, err := aes.NewCipher(k.expandLabel(t, "key", 16))
	if err != nil {
		t.Fatal(err)
	}
	seal, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	nonce := k.expandLabel(t, "iv", 12)
	for i, b := range binary.BigEndian.AppendUint64(nil, k.seq) {
		nonce[4+i] ^= b
	}
	head := binary.BigEndian.AppendUint16([]byte{23, 3, 3}, uint16(len(what)+seal.Overhead()))
	k.seq++
	return seal.Seal(append(out, head...), nonce, what, head)
}

// update appends the record that asks.
func (k *keyUpdates) update(t *testing.T, out []byte) []byte {
	t.Helper()
	out = k.record(t, out, 24, 0, 0, 1, 1, 22)
	k.secret, k.seq = k.expandLabel(t, "traffic upd", 32), 0
	return out
}

// A client that asks for new keys and takes no answer doesn't hold its
// connection for good: what answers it is written by who reads, whom no
// deadline of reading frees.
func TestUnansweredKeyUpdatesEnd(t *testing.T) {
	a, roots := newAuthority(t)
	cfg := listener.DefaultConfig()
	cfg.WriteIdle = 50 * time.Millisecond
	decrypt := newInterceptor(a, nil, cfg, nil)
	decrypt.tls.SessionTicketsDisabled = true // they would wait for a reader, too
	under, door := net.Pipe()
	defer under.Close()
	go decrypt.take(t.Context(), door, interceptedHost, func() {})
	var log bytes.Buffer
	client := tls.Client(under, &tls.Config{RootCAs: roots, ServerName: interceptedHost, KeyLogWriter: &log, MinVersion: tls.VersionTLS13})
	if err := client.Handshake(); err != nil {
		t.Fatal(err)
	}
	if suite := client.ConnectionState().CipherSuite; suite != tls.TLS_AES_128_GCM_SHA256 {
		t.Skipf("this machine prefers %s", tls.CipherSuiteName(suite))
	}
	_, secrets, _ := strings.Cut(log.String(), "CLIENT_TRAFFIC_SECRET_0 ")
	secret, err := hex.DecodeString(strings.Fields(secrets)[1])
	if err != nil {
		t.Fatal(err)
	}
	conn, err := decrypt.conns.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ended := make(chan error, 1)
	go func() {
		_, err := conn.Read(make([]byte, 1))
		ended <- err
	}()
	flood := keyUpdates{secret: secret}
	mustWrite(t, under, string(flood.update(t, nil)))
	if err := wait(t, ended); err == nil {
		t.Error("the client has sent nothing to read")
	}
}
