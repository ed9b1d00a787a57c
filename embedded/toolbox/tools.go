package toolbox

import (
	"slices"
	"strings"
)

// kubernetesVersion is what the built servers call themselves. It is the version
// of k8s.io/kubernetes in tools/go.mod (a test compares the two): a server built
// without it claims to be v0.0.0, and clients that compare versions stumble.
const kubernetesVersion = "v1.37.2"

// tool is a program that can be built.
type tool struct {
	name    string   // of the file
	about   string   // one line for people
	cost    string   // of the first build, for people
	module  string   // folder of its module, relative to the repository
	pkg     string   // what "go build" is given
	sources string   // folder of its own files in the module; "" if it has none
	tags    string   // build tags
	ldflags string   // beyond -s -w
	links   []string // other names it is reached by, beside it
}

// tools returns every program there is, by name.
func tools() []tool {
	const few = "about a minute on 2 cores"
	kube := tool{
		name: "kubebox", about: "etcd and kube-apiserver",
		cost:   "about 10 to 13 minutes and 2,100 packages on 2 cores",
		module: "tools", pkg: "./cmd/kubebox", sources: "cmd/kubebox",
		ldflags: kubernetesStamps(), links: []string{"etcd", "kube-apiserver"},
	}
	full := kube
	full.name, full.tags = "kubebox-full", "full"
	full.about += ", kube-controller-manager, kube-scheduler, kubectl"
	full.cost = "about 13 minutes and 2,500 packages on 2 cores, less once kubebox is built"
	full.links = append(slices.Clone(kube.links), "kube-controller-manager", "kube-scheduler", "kubectl")

	return []tool{
		kube,
		full,
		{name: "kubectl", about: "for a look at what \"make up\" runs", cost: "about 2 minutes on 2 cores, once kubebox is built",
			module: "tools", pkg: "k8s.io/kubernetes/cmd/kubectl", ldflags: kubernetesStamps()},
		{name: "versitygw", about: "S3 server", cost: "about 90 seconds on 2 cores",
			module: "tools", pkg: "github.com/versity/versitygw/cmd/versitygw"},
		{name: "controller-gen", about: "CRDs, RBAC and deep copies from Go types", cost: few,
			module: "tools", pkg: "sigs.k8s.io/controller-tools/cmd/controller-gen"},
		{name: "protoc-gen-go", about: "protoc plugin: messages", cost: few,
			module: "tools", pkg: "google.golang.org/protobuf/cmd/protoc-gen-go"},
		{name: "protoc-gen-go-grpc", about: "protoc plugin: gRPC services", cost: few,
			module: "tools", pkg: "google.golang.org/grpc/cmd/protoc-gen-go-grpc"},
		{name: "golangci-lint", about: "linters", cost: "about 3 minutes on 2 cores",
			module: "tools/lint", pkg: "github.com/golangci/golangci-lint/v2/cmd/golangci-lint"},
		{name: "charttemplate", about: "renders a Helm chart", cost: few,
			module: "tools/chart", pkg: ".", sources: "."},
	}
}

func find(name string) (tool, bool) {
	all := tools()
	i := slices.IndexFunc(all, func(t tool) bool { return t.name == name })
	if i < 0 {
		return tool{}, false
	}
	return all[i], true
}

func names() string {
	var s []string
	for _, t := range tools() {
		s = append(s, t.name)
	}
	return strings.Join(s, ", ")
}

// List describes every program, one line each.
func List() string {
	var b strings.Builder
	for _, t := range tools() {
		b.WriteString(t.name + strings.Repeat(" ", max(1, 20-len(t.name))) + t.about + " (first build: " + t.cost + ")\n")
	}
	return b.String()
}

func kubernetesStamps() string {
	version := strings.Split(strings.TrimPrefix(kubernetesVersion, "v"), ".")
	var flags []string
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		for _, v := range []string{
			"gitVersion=" + kubernetesVersion, "gitMajor=" + version[0], "gitMinor=" + version[1], "gitTreeState=clean",
		} {
			flags = append(flags, "-X "+pkg+"."+v)
		}
	}
	return strings.Join(flags, " ")
}
