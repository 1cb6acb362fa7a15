# docker build --build-arg VERSION=v1.0.0 --build-arg COMMIT=$(git rev-parse HEAD) -t firstcome .
# docker run -v firstcome:/data -p 8080:8080 firstcome serve --create-key
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=devel
ARG COMMIT=unknown
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=$VERSION -X main.commit=$COMMIT" -o /firstcome ./cmd/firstcome \
 && mkdir -p /data /image/usr/bin /image/etc/ssl/certs && mkdir --mode 1777 /image/tmp && cp /firstcome /image/usr/bin/ \
 && cp /etc/ssl/certs/ca-certificates.crt /image/etc/ssl/certs/ \
 && echo 'nonroot:x:65532:65532::/data:/sbin/nologin' >/image/etc/passwd

# Distroless: the program, the authorities that TLS trusts, a user; no shell, no package manager.
FROM scratch
COPY --from=build /image/ /
COPY --from=build --chown=65532:65532 /data /data
USER 65532:65532
WORKDIR /data
VOLUME /data
# In a container loopback reaches nobody: the first start needs a key (--create-key).
ENV FIRSTCOME_LISTEN=:8080 \
    FIRSTCOME_LEDGER=sqlite:/data/firstcome.db
EXPOSE 8080
# Where serve is said to be by variables, not by flags: this is another process, which does not see these.
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --retries=3 CMD ["/usr/bin/firstcome", "ready"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/bin/firstcome"]
CMD ["serve"]
