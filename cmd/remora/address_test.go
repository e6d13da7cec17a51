package main

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
)

// Ports that no system assigns automatically, to listeners on port 0 and to
// outgoing connections: one of those may be anybody's by the time that it is
// used.
const firstPort, lastPort = 10 << 10, 32<<10 - 1

// addresses are loopback addresses that nothing listens on, as far as a test
// can know, and none twice.
type addresses struct {
	mu   sync.Mutex
	last int // port; 0 = begin anywhere
}

func (a *addresses) next() (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.last == 0 {
		a.last = firstPort + rand.IntN(lastPort-firstPort)
	}
	var problem error
	for range 1000 {
		if a.last++; a.last > lastPort {
			a.last = firstPort
		}
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", a.last))
		if err == nil {
			return l.Addr().String(), l.Close()
		}
		problem = err
	}
	return "", problem
}

func freeAddress() (string, error) { return new(addresses).next() }
