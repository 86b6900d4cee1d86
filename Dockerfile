# The image of the idalloc command; the last stage is the default target.
#
#   docker buildx build --platform linux/amd64,linux/arm64 --build-arg VERSION=v0.1.0 -t ghcr.io/idalloc/idalloc:v0.1.0 .
#   docker build --target fileworker   -t ghcr.io/idalloc/fileworker .
#   docker build --target linkedworker -t ghcr.io/idalloc/linkedworker .
#   docker build --target partitionworker -t ghcr.io/idalloc/partitionworker .
#   docker build --target rabbitmq        -t ghcr.io/idalloc/rabbitmq .
#   docker build --target postgres        -t ghcr.io/idalloc/postgres .
#   docker build --target autoscaler      -t ghcr.io/idalloc/idalloc-autoscaler .
#   docker build --target controller      -t ghcr.io/idalloc/idalloc-controller .

# The compiler runs on the builder's own platform and cross-compiles: no emulation.
FROM --platform=$BUILDPLATFORM golang:1.26 AS modules
WORKDIR /src
# The modules have a layer of their own, so a change of the source does not download them again.
COPY go.mod go.sum ./
RUN go mod download

FROM modules AS build
COPY *.go ./
COPY cmd/ cmd/
COPY examples/ examples/
COPY internal/ internal/
COPY pkg/ pkg/
ARG TARGETOS TARGETARCH VERSION=dev
ENV CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH

FROM build AS build-examples
RUN go build -trimpath -ldflags "-s -w" -o /out/ ./examples/fileworker ./examples/linkedworker ./examples/partitionworker

# These are modules of their own.
FROM build AS build-clients
RUN go -C examples/rabbitmq build -trimpath -ldflags "-s -w" -o /out/rabbitmq . && go -C examples/postgres build -trimpath -ldflags "-s -w" -o /out/postgres .

FROM build AS build-idalloc
RUN go build -trimpath -tags nethttpomithttp2 -ldflags "-s -w -X main.version=$VERSION" -o /out/idalloc ./cmd/idalloc

FROM modules AS build-autoscaler
COPY autoscaler/go.mod autoscaler/go.sum autoscaler/
RUN go -C autoscaler mod download
COPY autoscaler/ autoscaler/
COPY internal/ internal/
COPY pkg/ pkg/
ARG TARGETOS TARGETARCH VERSION=dev
ENV CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH
RUN go -C autoscaler build -trimpath -tags nethttpomithttp2 -ldflags "-s -w -X main.version=$VERSION" -o /out/idalloc-autoscaler ./cmd/idalloc-autoscaler

FROM modules AS build-controller
COPY controller/go.mod controller/go.sum controller/
RUN go -C controller mod download
COPY controller/ controller/
COPY internal/ internal/
COPY pkg/ pkg/
ARG TARGETOS TARGETARCH VERSION=dev
ENV CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH
RUN go -C controller build -trimpath -tags nethttpomithttp2 -ldflags "-s -w -X main.version=$VERSION" -o /out/idalloc-controller ./cmd/idalloc-controller

# distroless/static has the CA certificates that a kubeconfig outside a cluster may need, and no shell. The user is numeric, because
# runAsNonRoot cannot check a name.
FROM gcr.io/distroless/static:nonroot AS bare
USER 65532:65532

FROM bare AS fileworker
COPY --from=build-examples /out/fileworker /fileworker
ENTRYPOINT ["/fileworker"]

FROM bare AS linkedworker
COPY --from=build-examples /out/linkedworker /linkedworker
ENTRYPOINT ["/linkedworker"]

FROM bare AS partitionworker
COPY --from=build-examples /out/partitionworker /partitionworker
ENTRYPOINT ["/partitionworker"]

FROM bare AS rabbitmq
COPY --from=build-clients /out/rabbitmq /rabbitmq
ENTRYPOINT ["/rabbitmq"]

FROM bare AS postgres
COPY --from=build-clients /out/postgres /postgres
ENTRYPOINT ["/postgres"]

FROM bare AS autoscaler
ARG VERSION=dev
ARG REVISION=unknown
LABEL org.opencontainers.image.title="idalloc-autoscaler" \
      org.opencontainers.image.description="Scales a Kubernetes workload by the load of its partitions" \
      org.opencontainers.image.source="https://github.com/idalloc/idalloc" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION"
COPY --from=build-autoscaler /out/idalloc-autoscaler /idalloc-autoscaler
ENTRYPOINT ["/idalloc-autoscaler"]

FROM bare AS controller
ARG VERSION=dev
ARG REVISION=unknown
LABEL org.opencontainers.image.title="idalloc-controller" \
      org.opencontainers.image.description="Gives ids to Kubernetes pods before their containers start" \
      org.opencontainers.image.source="https://github.com/idalloc/idalloc" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION"
COPY --from=build-controller /out/idalloc-controller /idalloc-controller
ENTRYPOINT ["/idalloc-controller"]

FROM bare AS idalloc
ARG VERSION=dev
ARG REVISION=unknown
LABEL org.opencontainers.image.title="idalloc" \
      org.opencontainers.image.description="A small integer id of its own for every replica of a Kubernetes workload" \
      org.opencontainers.image.source="https://github.com/idalloc/idalloc" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION"
COPY --from=build-idalloc /out/idalloc /idalloc
ENTRYPOINT ["/idalloc"]
