// Package pictures follows the link of firstcome demo --watch, as a stranger does, and takes  the pictures of the documents on the way.
package pictures
