/* The folder on the node's in-memory file system that holds the tables while the program runs. */
#ifndef SEATRIAL_NODE_FOLDER_H
#define SEATRIAL_NODE_FOLDER_H

/* Creates it if it is missing. Returns 0 or an error number: EPERM if it is a link, belongs to
 * another user, or is writable by others. */
int seatrial_make_node_folder(const char* path);

#endif
