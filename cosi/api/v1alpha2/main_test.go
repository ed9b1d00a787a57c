package v1alpha2_test

import (
	"os"
	"testing"

	"github.com/custody-storage/custody/api/apitest"
	"github.com/custody-storage/custody/cosi/api/crds"
)

// server serves the definitions of this group to all tests of the package.
var server *apitest.Server

func TestMain(m *testing.M) {
	os.Exit(apitest.Run(m, func(s *apitest.Server) { server = s }, crds.Files()))
}
