/* The folder on the node's memory file system in which tables live while the program runs. */
#ifndef SEATRIAL_NODE_FOLDER_H
#define SEATRIAL_NODE_FOLDER_H

/* Makes it where it is missing. 0, or an error number: EPERM where it is a link, another user's, or
 * others may write there. */
int seatrial_make_node_folder(const char* path);

#endif
