package main

import "github.com/spf13/cobra"

func newPlan() *cobra.Command { return &cobra.Command{Use: "plan"} }
