// Package scrape lets only authorised clients read metrics. It asks the API server by TokenReviews and SubjectAccessReviews, as
// sigs.k8s.io/controller-runtime/pkg/metrics/filters does. That package needs a part of the API server, with CEL and gRPC: 20 MB in a program of 34 MB.
package scrape

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authentication "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorization "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
)

const (
	// perSecond and burst limit the requests to the API server, because anyone can send tokens.
	perSecond, burst = 10, 20
	// patience is the timeout of both requests together.
	patience = 5 * time.Second
)

// Permitted passes a request on if its bearer token belongs to an account that may make it. Nothing is cached, so a revoked permission ends at once.
func Permitted(config *rest.Config, log logr.Logger, handler http.Handler) (http.Handler, error) {
	config = rest.CopyConfig(config) // with its own limit, so that a flood of tokens delays nothing else
	config.QPS, config.Burst, config.RateLimiter = perSecond, burst, nil
	tokens, err := authentication.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client of TokenReviews: %w", err)
	}
	rights, err := authorization.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client of SubjectAccessReviews: %w", err)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), patience)
		defer cancel()
		status, err := review(ctx, tokens.TokenReviews(), rights.SubjectAccessReviews(), r)
		if err != nil {
			// Log: idalloc-controller cannot ask the API server who scrapes its metrics, and answers 500.
			// Do: see the error. The controller needs the ClusterRole that the chart makes with `controller.metrics.authentication`.
			log.Info("cannot ask who scrapes the metrics", "error", err.Error())
		}
		if status != http.StatusOK {
			http.Error(w, http.StatusText(status), status)
			return
		}
		handler.ServeHTTP(w, r)
	}), nil
}

// review returns the HTTP status of the answer: 200 if the request is permitted.
func review(ctx context.Context, tokens authentication.TokenReviewInterface, rights authorization.SubjectAccessReviewInterface, r *http.Request) (int, error) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if token = strings.TrimSpace(token); !strings.EqualFold(scheme, "bearer") || token == "" {
		return http.StatusUnauthorized, nil
	}
	who, err := tokens.Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	if err != nil {
		return http.StatusInternalServerError, fmt.Errorf("TokenReview: %w", err)
	}
	if !who.Status.Authenticated {
		return http.StatusUnauthorized, nil
	}
	user := who.Status.User
	asks := authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: map[string]authorizationv1.ExtraValue{},
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: r.URL.Path, Verb: strings.ToLower(r.Method)},
	}
	for key, value := range user.Extra {
		asks.Extra[key] = authorizationv1.ExtraValue(value)
	}
	may, err := rights.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: asks}, metav1.CreateOptions{})
	if err != nil {
		return http.StatusInternalServerError, fmt.Errorf("SubjectAccessReview: %w", err)
	}
	if !may.Status.Allowed {
		return http.StatusForbidden, nil
	}
	return http.StatusOK, nil
}

// TLS returns the TLS configuration of the server, which protects tokens. This process makes and signs its certificate itself, as kube-controller-manager does.
func TLS() (*tls.Config, error) {
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("certificate: %w", err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"}}, nil
}
