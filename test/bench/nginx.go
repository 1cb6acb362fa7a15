package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/firstcome/firstcome/test/services"
)

// nginxConf passes all to one node over connections that are kept, as packaging/nginx does.
const nginxConf = `daemon off; master_process off; pid %[1]s/pid;
events { worker_connections 1024; }
http {
	access_log off;
	client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy;
	fastcgi_temp_path %[1]s/fastcgi; uwsgi_temp_path %[1]s/uwsgi; scgi_temp_path %[1]s/scgi;
	upstream node { server %[2]s; keepalive 256; }
	server {
		listen %[3]s;
		keepalive_requests 1000000;
		location / {
			proxy_pass http://node;
			proxy_http_version 1.1;
			proxy_set_header Connection "";
			proxy_set_header Host $host;
		}
	}
}
`

// behindNginx starts nginx before a node, and returns the node as it is reached through it.
func (b *bench) behindNginx(ctx context.Context, node *server) *server {
	binary, err := exec.LookPath("nginx")
	if err != nil {
		binary, err = exec.LookPath("/usr/sbin/nginx") // where the path of most users does not lead
	}
	if err != nil {
		must(fmt.Errorf("%w: .ci/install installs nginx-light", err))
	}
	address := value(services.Address())
	dir := value(os.MkdirTemp(b.dir, "nginx-"))
	conf := filepath.Join(dir, "nginx.conf")
	must(os.WriteFile(conf, fmt.Appendf(nil, nginxConf, dir, node.address, address), 0o600))
	return begin(ctx, exec.Command(binary, "-p", dir, "-c", conf, "-e", "stderr"), address)
}

// nginx: claims through nginx, and 5 % reads among them on the same connections, against the same where net/http
// answers everything. A path with an escape is never for a lane.
func nginx(ctx context.Context, b *bench) {
	nodes := map[string]target{}
	for _, lanes := range []string{"on", "off"} {
		node := b.serve(ctx, nil, "--ledger", "sqlite:"+filepath.Join(b.dir, "nginx-"+lanes+".db"), "--lanes", lanes)
		defer node.stop()
		proxy := b.behindNginx(ctx, node)
		defer proxy.stop()
		id := b.campaign(ctx, node, -1)
		drive(ctx, at(node, id, sequential(0)), b.claims, 64, 0, "issued")
		through := *node // whose processor time counts
		through.address = proxy.address
		nodes[lanes] = at(&through, id, sequential(0))
	}
	reads := []struct {
		who, want string
		path      func(user string) string
	}{
		{"lanes answer", wantLanes, func(user string) string { return user }},
		{"net/http answers", "", func(user string) string { return strings.ReplaceAll(user, "-", "%2D") }},
	}
	for _, read := range reads {
		round := func(lanes string) func() figure {
			t := nodes[lanes]
			t.read = read.path
			return func() figure { return drive(ctx, t, b.claims, 64, 0, "already_issued") }
		}
		c := b.pair(round("on"), round("off"))
		b.printRate("already_issued through nginx, 5 % reads that "+read.who+", 64 connections", c, "--lanes off", "")
		b.printCPU(c, read.want)
	}
}
