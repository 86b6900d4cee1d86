package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	// drainAgain is how often it is said that the work has stopped, until the state is another one:
	// the idalloc container may have restarted and forgotten.
	drainAgain = time.Second
	// drainTimeout bounds one request.
	drainTimeout = 5 * time.Second
)

// sayDrained tells the idalloc container that the work has stopped for this drain, so that the pod that
// waits for the id gets it. ctx ends when the state changes, and with it the request: nothing is said any
// more once the work begins again. A late request names an earlier drain, and does not count.
func sayDrained(ctx context.Context, dir, target string, drain int) {
	target += "?" + url.Values{"stop": {strconv.Itoa(drain)}}.Encode()
	ticker := time.NewTicker(drainAgain)
	defer ticker.Stop()
	for {
		if err := postDrained(ctx, dir, target); err != nil && ctx.Err() == nil {
			log.Print(err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func postDrained(ctx context.Context, dir, target string) error {
	ctx, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, target, http.NoBody) //nolint:gosec // the pod's author names the address
	if err != nil {
		return err
	}
	// By this file a container of the pod is told from others that reach the address.
	secret, err := os.ReadFile(filepath.Join(dir, "drain-secret")) //nolint:gosec // the pod's author names the directory
	if err != nil {
		return err
	}
	r.Header.Set("Idalloc-Drain-Secret", strings.TrimSpace(string(secret)))
	resp, err := http.DefaultClient.Do(r) //nolint:gosec // as above
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusNoContent {
		err = fmt.Errorf("%s: %s", target, resp.Status)
	}
	return errors.Join(err, resp.Body.Close())
}
