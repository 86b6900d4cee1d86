package node

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

const (
	// firstBlock and lastBlock bound the second byte of the pods' addresses.
	firstBlock, lastBlock = 16, 254
	// blockSize is how many addresses a block gives: 127.x.0.1 to 127.x.249.250.
	blockSize = 250 * 250
	// lockPort is held on 127.x.255.254 by the node that uses block x.
	lockPort = 31999
)

var errNoAddress = errors.New("no free pod address")

// addresses gives each live pod a loopback address of its own. Several test
// binaries may run at once; each takes a block 127.x.0.0/16, which a listening
// socket locks for as long as the process lives.
type addresses struct {
	block int
	lock  net.Listener

	mu   sync.Mutex
	next int
	used map[int]bool
}

func newAddresses(ctx context.Context) (*addresses, error) {
	for _, offset := range rand.Perm(lastBlock - firstBlock + 1) { //nolint:gosec // no secret
		block := firstBlock + offset
		lock, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(fmt.Sprintf("127.%d.255.254", block), strconv.Itoa(lockPort)))
		if err == nil {
			return &addresses{block: block, lock: lock, used: map[int]bool{}}, nil
		}
	}
	return nil, errNoAddress
}

// take gives out addresses in turn: one that was just given back may still have
// connections in TIME_WAIT, and peers that remember it.
func (a *addresses) take() (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for range blockSize {
		n := a.next
		a.next = (a.next + 1) % blockSize
		if !a.used[n] {
			a.used[n] = true
			return a.format(n), nil
		}
	}
	return "", errNoAddress
}

func (a *addresses) giveBack(address string) {
	var third, fourth int
	if _, err := fmt.Sscanf(address, fmt.Sprintf("127.%d.%%d.%%d", a.block), &third, &fourth); err != nil {
		return // no address was taken
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.used, third*250+fourth-1)
}

func (a *addresses) format(n int) string {
	return fmt.Sprintf("127.%d.%d.%d", a.block, n/250, n%250+1)
}

func (a *addresses) close() { _ = a.lock.Close() }
