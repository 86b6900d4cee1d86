package main

import (
	"context"
	"errors"
	"os"
	"strconv"

	"github.com/idalloc/idalloc/test/overlap"
)

// workByEnvironment works under the id of the environment. It knows nothing of Kubernetes.
func workByEnvironment(ctx context.Context, w *overlap.Writer) error {
	id, idErr := strconv.Atoi(os.Getenv("IDALLOC_ID"))
	count, countErr := strconv.Atoi(os.Getenv("IDALLOC_COUNT"))
	token, tokenErr := strconv.ParseInt(os.Getenv("IDALLOC_TOKEN"), 10, 64)
	if err := errors.Join(idErr, countErr, tokenErr); err != nil {
		return err
	}
	return act(ctx, w, id, count, token)
}
