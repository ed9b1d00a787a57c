# syntax=docker/dockerfile:1
# One image with all of Custody's programs: a static binary and nothing else.
#
#   docker build -t registry.example.com/custody:dev .
#   docker buildx build --platform linux/amd64,linux/arm64 --push -t registry.example.com/custody:dev .
#
# The tests of this repository don't build it: they run where there is no container engine.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
ARG TARGETOS TARGETARCH
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/gocache \
    GOCACHE=/gocache CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -tags grpcnotrace -ldflags="-s -w" -o /custody ./cmd/custody

# CA certificates come with the first stage: the S3 driver may speak to a server by https.
FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /custody /custody
USER 65532:65532
ENTRYPOINT ["/custody"]
