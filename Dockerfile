# Both images can be replaced, for mirrors and for bases with a shell:
#   docker build --build-arg BASE_IMAGE=alpine:3 --build-arg VERSION=v1.2.3 .
ARG BUILD_IMAGE=golang:1.26
ARG BASE_IMAGE=scratch

FROM ${BUILD_IMAGE} AS build
ARG VERSION=
ARG TARGETOS
ARG TARGETARCH
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
# Static, so that it runs on an empty image. /image is the root of that image: the only directory that is ever written
# to is /data.
RUN CGO_ENABLED=0 GOOS=${TARGETOS} GOARCH=${TARGETARCH} \
    go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /image/remora ./cmd/remora \
 && mkdir -p /image/data /image/etc/ssl/certs \
 && chmod 0700 /image/data \
 && cp /etc/ssl/certs/ca-certificates.crt /image/etc/ssl/certs/ca-certificates.crt

FROM ${BASE_IMAGE}
COPY --from=build --chown=65532:65532 /image/ /
# Off loopback, memory needs to know whose it is: X-Remora-User, or one of the headers in identity.userHeaders. Set
# REMORA_IDENTITY_ANONYMOUS=keyHolder where one person holds the API key.
#
# The key that seals the data is named here on purpose: on the volume it is convenient; mounted from a secret
# (REMORA_STORAGE_KEY_FILE=/run/secrets/...) a copy of the volume alone can't be read.
ENV REMORA_LISTEN=0.0.0.0:8787 \
    REMORA_STORAGE_DIR=/data/store \
    REMORA_STORAGE_KEY_FILE=/data/store.key
USER 65532:65532
VOLUME /data
EXPOSE 8787
HEALTHCHECK --interval=15s --timeout=3s --start-period=5s CMD ["/remora", "check", "--live"]
ENTRYPOINT ["/remora"]
CMD ["serve"]
