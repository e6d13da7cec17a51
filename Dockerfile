# Builds for every platform that Go can compile for, without emulation:
#   docker buildx build --platform linux/amd64,linux/arm64 --build-arg VERSION=v1.2.3 .
# Both images can be replaced, for mirrors, for pins by digest, and for bases with a shell:
#   --build-arg BASE_IMAGE=gcr.io/distroless/static-debian13:nonroot@sha256:...
# docs/install.md says how releases pin them, and how to build the same bytes again.
ARG BUILD_IMAGE=golang:1.26
ARG BASE_IMAGE=scratch

FROM --platform=$BUILDPLATFORM ${BUILD_IMAGE} AS build
ARG VERSION=
ARG COMMIT=
ARG TARGETOS
ARG TARGETARCH
# The time of every file, in seconds since 1970. Releases give that of the commit.
ARG SOURCE_DATE_EPOCH=0
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
# Static, so that it runs on an empty image. The flags are those of the released archives: the binary is the same.
RUN CGO_ENABLED=0 GOOS=${TARGETOS} GOARCH=${TARGETARCH} GOTOOLCHAIN=local go build -trimpath -buildvcs=false \
    -ldflags "-s -w -X main.version=${VERSION} -X main.commit=${COMMIT}" -o /image/remora ./cmd/remora
# /image has what an empty base lacks. /volume has the only directory that is ever written to.
RUN mkdir -p /image/etc/ssl/certs /image/licenses /volume/data \
 && cp /etc/ssl/certs/ca-certificates.crt /image/etc/ssl/certs/ \
 && cp LICENSE cmd/remora/notices/THIRD_PARTY_NOTICES.txt /image/licenses/ \
 && echo 'nonroot:x:65532:65532:nonroot:/data:/sbin/nologin' > /image/etc/passwd \
 && echo 'nonroot:x:65532:' > /image/etc/group \
 && chmod -R u=rwX,go=rX /image \
 && chmod 0700 /volume/data \
 && find /image /volume -exec touch -h -d "@${SOURCE_DATE_EPOCH}" {} +

FROM ${BASE_IMAGE}
ARG VERSION=
ARG COMMIT=
ARG BASE_IMAGE
LABEL org.opencontainers.image.title="Remora" \
      org.opencontainers.image.description="A transparent proxy that gives LLM agents a long-term memory" \
      org.opencontainers.image.source="https://github.com/remora-proxy/remora" \
      org.opencontainers.image.documentation="https://github.com/remora-proxy/remora/tree/main/docs" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${COMMIT}" \
      org.opencontainers.image.base.name="${BASE_IMAGE}"
# Everything but /data belongs to root: the program can't change itself, even where the root is writable.
COPY --from=build --chown=0:0 /image/ /
COPY --from=build --chown=65532:65532 /volume/ /
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
