//go:build tools
package h2tool
import _ "github.com/summerwind/h2spec/cmd/h2spec"
