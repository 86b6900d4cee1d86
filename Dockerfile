# The image of the idalloc command, for those who build with docker:
#
#   docker build --build-arg VERSION=dev -t registry.example.com/idalloc/idalloc .
#
# make images builds it and all others without docker.

# The compiler runs on the builder's own platform and cross-compiles: no emulation.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
# The modules have a layer of their own, so a change of the source does not download them again.
COPY go.mod go.sum ./
RUN go mod download
COPY *.go ./
COPY cmd/ cmd/
COPY internal/ internal/
COPY pkg/ pkg/
ARG TARGETOS TARGETARCH VERSION=dev
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -tags nethttpomithttp2 -ldflags "-s -w -X main.version=$VERSION" -o /out/ ./cmd/idalloc ./cmd/idalloc-countwatch

# distroless/static has the CA certificates that a kubeconfig outside a cluster may need, and no shell. The user is numeric, because
# runAsNonRoot cannot check a name.
FROM gcr.io/distroless/static:nonroot
USER 65532:65532
COPY --from=build /out/ /
ENTRYPOINT ["/idalloc"]
