//go:build !linux

package main

import (
	"os/exec"
	"time"
)

func group(*exec.Cmd) {}

func limit(int, time.Duration) error { return nil }
