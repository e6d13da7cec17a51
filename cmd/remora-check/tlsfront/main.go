// Command tlsfront serves TLS, with HTTP/1.1 and HTTP/2, in front of a plain
// server. It makes its certificate and writes it to a file. It is the upstream
// for the run of real clients through the forward listener.
package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"flag"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"time"
)

func main() {
	listen := flag.String("l", "127.0.0.1:4443", "listen on `address`")
	target := flag.String("u", "http://127.0.0.1:4025", "forward to `URL`")
	file := flag.String("cert", "upstream.pem", "write the certificate to `file`")
	flag.Parse()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	check(err)
	check(os.WriteFile(*file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	u, err := url.Parse(*target)
	check(err)
	server := &http.Server{
		Addr:              *listen,
		Handler:           &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(u) }, FlushInterval: -1},
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}},
		ReadHeaderTimeout: time.Minute,
	}
	check(server.ListenAndServeTLS("", ""))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
