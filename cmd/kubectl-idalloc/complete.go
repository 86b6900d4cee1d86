package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/idalloc/idalloc/internal/inspect"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// completionTime limits how long a shell waits.
const completionTime = 5 * time.Second

// finder returns workloads of some kinds.
type finder func(ctx context.Context, s *store.Store, namespace string, of ...string) ([]kinds.Ref, error)

// completeUsers completes workloads that use idalloc.
func (g *global) completeUsers(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	return g.complete(cmd, args, word, func(ctx context.Context, s *store.Store, namespace string, of ...string) ([]kinds.Ref, error) {
		return inspect.Workloads(ctx, s, namespace, "", of...)
	})
}

// completeAny completes all workloads.
func (g *global) completeAny(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	return g.complete(cmd, args, word, inspect.Candidates)
}

func (g *global) complete(cmd *cobra.Command, args []string, word string, find finder) ([]string, cobra.ShellCompDirective) {
	const none = cobra.ShellCompDirectiveNoFileComp
	prefix, _, slash := strings.Cut(word, "/")
	switch {
	case slash:
		prefix += "/"
	case len(args) > 0 && !strings.Contains(args[0], "/"):
		prefix = ""
	default:
		words := make([]string, 0, len(inspect.Kinds()))
		for _, kind := range inspect.Kinds() {
			words = append(words, strings.ToLower(kind)+"/")
		}
		return words, none | cobra.ShellCompDirectiveNoSpace
	}
	kind := strings.TrimSuffix(prefix, "/")
	if kind == "" {
		kind = args[0]
	}
	of, err := kinds.ParseRef(kind+"/any", "")
	s, namespace, cerr := g.connect()
	if err != nil || cerr != nil {
		return nil, none
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	refs, _ := find(ctx, s, namespace, of.Kind) // a shell shows no errors
	words := make([]string, 0, len(refs))
	for _, ref := range refs {
		if w := prefix + ref.Name; !slices.Contains(args, w) {
			words = append(words, w)
		}
	}
	return words, none
}

// completePods completes the names of pods.
func (g *global) completePods(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	s, namespace, err := g.connect()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return names(cmd.Context(), s, store.Pods, namespace), cobra.ShellCompDirectiveNoFileComp
}

func names(ctx context.Context, s *store.Store, of schema.GroupVersionResource, namespace string) []string {
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()
	var all []string
	err := s.EachMetadata(ctx, of, namespace, metav1.ListOptions{}, func() { all = nil }, func(o *metav1.PartialObjectMetadata) { all = append(all, o.Name) })
	if err != nil {
		return nil // a shell shows no errors
	}
	slices.Sort(all)
	return all
}

// completeFlags completes the values of the flags that all commands have.
func (g *global) completeFlags(root *cobra.Command) {
	// RegisterFlagCompletionFunc fails only for a flag that does not exist.
	_ = root.RegisterFlagCompletionFunc("namespace", func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		s, _, err := g.connect()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return names(cmd.Context(), s, schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, ""), cobra.ShellCompDirectiveNoFileComp
	})
	_ = root.RegisterFlagCompletionFunc("context", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		rules := clientcmd.NewDefaultClientConfigLoadingRules()
		rules.ExplicitPath = g.Kubeconfig
		config, err := rules.Load()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		all := make([]string, 0, len(config.Contexts))
		for name := range config.Contexts {
			all = append(all, name)
		}
		slices.Sort(all)
		return all, cobra.ShellCompDirectiveNoFileComp
	})
}
