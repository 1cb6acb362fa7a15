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
 && mkdir /data

# No shell, no package manager, user 65532.
FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /firstcome /usr/bin/firstcome
COPY --from=build --chown=nonroot:nonroot /data /data
WORKDIR /data
VOLUME /data
# In a container loopback reaches nobody: the first start needs a key (--create-key).
ENV FIRSTCOME_LISTEN=:8080 \
    FIRSTCOME_LEDGER=sqlite:/data/firstcome.db
EXPOSE 8080
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/bin/firstcome"]
CMD ["serve"]
