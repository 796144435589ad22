# The operator's image. RUNTIME_IMAGE is meant to be the image
# distroless/static:nonroot of a registry that you trust; without it the image
# holds the manager and the builder's CA certificates alone.
ARG BUILDER_IMAGE=golang:1.26
ARG RUNTIME_IMAGE=scratch

FROM ${BUILDER_IMAGE} AS builder
ARG TARGETOS
ARG TARGETARCH
ARG VERSION=dev
WORKDIR /workspace

# The modules first, so that a change of the sources does not fetch them again.
COPY go.mod go.sum ./
RUN go mod download

COPY api/ api/
COPY cmd/manager/ cmd/manager/
COPY controllers/ controllers/
COPY internal/ internal/
RUN CGO_ENABLED=0 GOOS=${TARGETOS:-linux} GOARCH=${TARGETARCH} \
    go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=${VERSION}" -o manager ./cmd/manager

FROM ${RUNTIME_IMAGE}
WORKDIR /
COPY --from=builder /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=builder /workspace/manager /manager
# The user nonroot of distroless, by number so that runAsNonRoot can be checked.
USER 65532:65532
ENTRYPOINT ["/manager"]
