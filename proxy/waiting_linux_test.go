package proxy

import (
	"context"
	"net"
	"testing"
	"time"
)

// A body has come when the last of its bytes has, be some of them read ahead, and not before.
func TestBodyHasCome(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	c, err := newDoorConn(nil, conn.(*net.TCPConn), nil, context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer c.cancel()
	const sent, ahead = 50_000, 10
	b := &doorBody{c: c, left: ahead + sent}
	c.ahead, c.from, c.to = new([mostHead]byte), 5, 5+ahead

	mustWrite(t, client, string(make([]byte, sent-1)))
	for deadline := time.Now().Add(10 * time.Second); c.waiting() < ahead+sent-1; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d bytes of %d have come", c.waiting(), ahead+sent-1)
		}
	}
	if b.come() {
		t.Error("the last byte has not come")
	}
	mustWrite(t, client, "x")
	for deadline := time.Now().Add(10 * time.Second); !b.come(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("all has come, and it is not noticed")
		}
	}
	c.tls = new(secureConn)
	if b.come() {
		t.Error("what waits under TLS is longer than what it says")
	}
	c.tls = nil
	_ = conn.Close()
	if b.come() {
		t.Error("nothing comes on a closed connection")
	}
}
