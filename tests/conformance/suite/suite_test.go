// Package conformance runs the importable end-to-end suite of the Go virtual-kubelet library
// against one node of an existing cluster.
//
// Environment, since the suite keeps a package global and parses no flags of its own:
//
//	KUBECONFIG        kubeconfig of the test's identity (required)
//	VK_NODE_NAME      name of the Node under test (required)
//	VK_NAMESPACE      namespace for the test's pods (required)
//	VK_WATCH_TIMEOUT  how long one condition is awaited (required)
//
// Which tests run is -test.run's business.
package conformance

import (
	"os"
	"testing"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/test/e2e"
)

func required(t *testing.T, name string) string {
	value := os.Getenv(name)
	if value == "" {
		t.Fatalf("the environment variable %s is not set", name)
	}
	return value
}

func TestConformance(t *testing.T) {
	timeout, err := time.ParseDuration(required(t, "VK_WATCH_TIMEOUT"))
	if err != nil {
		t.Fatalf("VK_WATCH_TIMEOUT: %v", err)
	}
	e2e.NewEndToEndTestSuite(e2e.EndToEndTestSuiteConfig{
		Kubeconfig:   required(t, "KUBECONFIG"),
		Namespace:    required(t, "VK_NAMESPACE"),
		NodeName:     required(t, "VK_NODE_NAME"),
		WatchTimeout: timeout,
	}).Run(t)
}
