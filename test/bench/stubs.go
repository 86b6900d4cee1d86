package main

import (
	"context"
	"io"

	"github.com/idalloc/idalloc/test/envtest/suite"
)

func propagation(context.Context, *suite.Suite, options, io.Writer, io.Writer) error { return nil }
func capacity(context.Context, *suite.Suite, options, io.Writer, io.Writer) error    { return nil }
