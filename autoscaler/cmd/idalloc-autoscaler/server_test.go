package main

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener without sockets, so that it can be used in a bubble.
type pipes chan net.Conn

// Accept implements net.Listener.
func (p pipes) Accept() (net.Conn, error) {
	if c, open := <-p; open {
		return c, nil
	}
	return nil, net.ErrClosed
}

// Close implements net.Listener.
func (p pipes) Close() error {
	close(p)
	return nil
}

// Addr implements net.Listener.
func (pipes) Addr() net.Addr { return &net.TCPAddr{} }

func TestAnIdleConnectionIsClosed(t *testing.T) {
	for sent, want := range map[string]time.Duration{"GET / HTTP/1.1\r\n": readTimeout, "GET / HTTP/1.1\r\nHost: x\r\n\r\n": idleTimeout} {
		synctest.Test(t, func(t *testing.T) {
			listener, server := make(pipes), newServer(http.NotFoundHandler())
			go func() { _ = server.Serve(listener) }()
			here, there := net.Pipe()
			listener <- there
			begin := time.Now()
			_, err := io.WriteString(here, sent)
			if err = errors.Join(err, here.SetReadDeadline(begin.Add(time.Hour))); err != nil {
				t.Fatal(err)
			}
			answers := bufio.NewReader(here)
			if want == idleTimeout {
				answer, err := http.ReadResponse(answers, nil)
				if err != nil {
					t.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, answer.Body)
				_ = answer.Body.Close()
			}
			if _, err := answers.ReadByte(); !errors.Is(err, io.EOF) || time.Since(begin) != want {
				t.Errorf("after %q: %v after %s, want %s", sent, err, time.Since(begin), want)
			}
			_ = server.Close()
		})
	}
}
